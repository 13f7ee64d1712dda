// The lists below the question: answers to correct, and edges to judge.
const lists = (() => {
  const { element } = g3nn;
  const find = (id) => document.getElementById(id);
  let tools = null; // { get, post, open, place, show }
  let start = 0;
  let total = 0;

  function named(label) {
    return element("span", { class: "named" },
      element("i", { class: "swatch", style: `--class: ${drawing.colour(tools.place(label))}`, "aria-hidden": "true" }), label);
  }

  const opinion = ({ label, kind }) => (kind === "label" ? label : "do not know");

  function row(one) {
    const said = one.disagree ? one.answers.map((answer) => `${answer.person}: ${opinion(answer)}`).join(", ")
      : [...new Set(one.answers.map((answer) => answer.person))].join(", ");
    const notes = one.answers.map(({ note }) => note).filter(Boolean).join(" / ");
    const guess = one.answers.at(0)?.guess ?? null;
    const last = one.answers.at(-1);
    const when = last ? new Date(last.at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : "";
    const word = one.instead === null ? "Correct" : "Look again";
    const correct = element("button", { type: "button", class: "quiet", "aria-label": `${word}: ${one.title}` }, word);
    correct.addEventListener("click", () => tools.open(one.node));
    return element("tr", { class: one.disagree ? "disputed" : null },
      element("td", {}, one.title), element("td", {}, one.label === null ? "do not know" : named(one.label)),
      element("td", {}, guess === null ? "–" : guess === one.label ? "the same" : guess),
      element("td", { class: one.disagree || notes || one.instead !== null ? null : "who-said" }, one.disagree ? `disagree: ${said}` : said || "the table",
        one.instead === null ? null : element("div", { class: "note" }, "nodes like it are rather ", named(one.instead),
          `; wrong with probability ${drawing.odds(one.wrong)}`), notes ? element("div", { class: "note" }, notes) : null),
      element("td", { class: "when" }, when), element("td", {}, correct));
  }

  async function showAnswers() {
    const only = ["doubted", "disputed"].find((id) => find(id).getAttribute("aria-pressed") === "true") ?? "";
    const found = await tools.get(`answers?start=${start}&only=${only}`);
    if (!found) return;
    total = found.total;
    if (!found.rows.length && start) { start = 0; return showAnswers(); }
    if (!found.rows.length) {
      return find("answers").replaceChildren(element("p", { class: "empty" },
        { disputed: "Nobody disagrees.", doubted: "No label is contradicted by others." }[only] ?? "No answers yet."));
    }
    const head = ["node", "label", "guess before", "who", "when", ""].map((name) =>
      element("th", { class: { when: "when", who: "who-said" }[name] ?? null, scope: "col" }, name));
    const turn = (text, by) => {
      const button = element("button", { type: "button", class: "quiet" }, text);
      button.disabled = by < 0 ? !start : start + found.rows.length >= total;
      button.addEventListener("click", () => { start = Math.max(0, start + by); showAnswers(); });
      return button;
    };
    find("answers").replaceChildren(
      element("div", { class: "scroll", role: "region", "aria-label": "Answers", tabindex: "0" }, element("table", { class: "plain" },
        element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...found.rows.map(row)))),
      element("p", { class: "note" }, `${start + 1} to ${start + found.rows.length} of ${total} nodes `,
        ...(total > found.rows.length ? [turn("Newer", -found.size), " ", turn("Older", found.size)] : [])));
  }

  function edge(kind, { source, target, probability }) {
    const [yes, no] = kind === "suspicious" ? [["keep", "It is right"], ["remove", "Reject"]]
      : [["add", "Add it"], ["leave", "No edge"]];
    const line = element("tr", {}, element("td", {}, kind === "suspicious" ? "edge" : "no edge"),
      element("td", {}, source[1]), element("td", {}, target[1]), element("td", {}, drawing.odds(probability)));
    const choices = [yes, no].map(([verdict, text]) => {
      const button = element("button", {
        type: "button", class: "quiet", "aria-label": `${text}: ${source[1]} and ${target[1]}`,
      }, text);
      button.addEventListener("click", async () => {
        const saved = await tools.post("edge", { source: source[0], target: target[0], verdict });
        if (!saved) return;
        tools.show(saved);
        const next = (line.nextElementSibling ?? line.previousElementSibling)?.querySelector("button");
        line.remove();
        (next ?? find("find-edges")).focus();
      });
      return button;
    });
    line.append(element("td", {}, ...choices));
    return line;
  }

  async function showEdges() {
    const [button, holder] = [find("find-edges"), find("edges")];
    button.disabled = true;
    holder.replaceChildren(element("p", { class: "empty", role: "status" }, "Looking…"));
    const found = await tools.get("edges");
    button.disabled = false;
    if (!found) return holder.replaceChildren();
    if (found.edges === null) {
      return holder.replaceChildren(element("p", { class: "empty", role: "status" }, "This takes longer; ask again in a while."));
    }
    const rows = [...found.edges.suspicious.map((one) => edge("suspicious", one)),
      ...found.edges.missing.map((one) => edge("missing", one))];
    holder.replaceChildren(rows.length ? element("div", { class: "scroll", role: "region", "aria-label": "Edges", tabindex: "0" },
      element("table", { class: "plain" }, element("thead", {}, element("tr", {},
        ...["now", "from", "to", "probability", ""].map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...rows))) : element("p", { class: "empty", role: "status" }, "Nothing to check."));
  }

  function begin(given) {
    tools = given;
    const filters = [find("doubted"), find("disputed")];
    for (const button of filters) {
      button.addEventListener("click", () => {
        const pressed = button.getAttribute("aria-pressed") !== "true";
        for (const one of filters) one.setAttribute("aria-pressed", String(one === button && pressed));
        start = 0;
        showAnswers();
      });
    }
    find("find-edges").addEventListener("click", showEdges);
    find("find-node").addEventListener("submit", (event) => {
      event.preventDefault();
      const id = find("node-id").value.trim();
      if (id) tools.open(id);
    });
  }

  return { begin, showAnswers };
})();
