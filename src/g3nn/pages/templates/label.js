// Asks, shows, and sends answers. Only what the server has confirmed counts as saved.
(() => {
  const { data, element } = g3nn;
  const find = (id) => document.getElementById(id);
  const store = (name, value) => { try { return value === undefined ? sessionStorage.getItem(name) : sessionStorage.setItem(name, value); } catch { return null; } };
  const keep = (name, value) => { try { return value === undefined ? localStorage.getItem(name) : localStorage.setItem(name, value); } catch { return null; } };

  const session = store("g3nn-session") ?? crypto.randomUUID();
  store("g3nn-session", session);
  let state = null;
  let question = null; // what is shown
  let correcting = false; // shown because the person went there, not because it was asked
  let busy = false;
  let asked = 0;
  let keys = []; // The classes that 1 to 9 choose, as long as a question is shown.

  const MOST_KEYS = 9;
  const MOST_BARS = 6;
  const MANY = 12; // More classes are shown small,
  const TALL = 30; // and more than this many do not stay in view beside a long text.

  const key = (name) => (keys.includes(name) ? `${keys.indexOf(name) + 1}` : null);
  const place = (name) => Math.max(0, state.classes.indexOf(name));
  const person = () => find("person").value.trim() || data.person;

  // Talking to the server

  function complain(text) {
    find("alert").textContent = text ?? "";
    find("alert").hidden = !text;
  }

  let offline = false;

  async function send(path, options) {
    try {
      const response = await fetch(`api/${path}`, { ...options, cache: "no-store" });
      const content = await response.json();
      offline = false;
      if (response.ok) {
        complain(null);
        return content;
      }
      complain(response.status === 403
        ? "The server was started again. Open the address that it printed; every confirmed answer is there."
        : content.error);
    } catch {
      offline = true;
      complain("The server does not answer. Every confirmed answer is safe. Start g3nn label again, or wait: this page tries again.");
    }
    return null;
  }

  const get = (path) => send(path, {});
  const post = (path, content) => send(path, {
    method: "POST", headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ session, person: person(), request: crypto.randomUUID(), ...content }),
  });

  function work(flag) {
    busy = flag;
    document.querySelector(".question").setAttribute("aria-busy", String(flag));
  }

  // Showing

  function showState(now) {
    const before = state;
    state = now;
    const words = { idle: "ready", learning: "learning…", working: "thinking…", writing: "writing the result…", failed: "stopped" };
    const { status, trouble } = state.learner;
    const from = state.learned_from === null ? "no model yet" : `learned from ${state.learned_from} labels`;
    find("learner").textContent = status === "failed" ? `Model: ${trouble}` : `${from}${status === "idle" ? "" : ` · ${words[status]}`}`;
    find("learner").dataset.status = status;
    find("disputed").textContent = `Only disagreements (${state.disputed})`;
    find("doubted").textContent = `To look at again (${state.doubted})`;
    if (!before || before.classes.join("\n") !== now.classes.join("\n")) showClasses();
    else counts();
    showProgress();
    showResult();
  }

  function showResult() {
    const { status, out, error, labels, changed } = state.result;
    const told = {
      writing: "Fitting and writing… You can go on labelling.", failed: `Nothing was written: ${error}`,
      written: `Written from ${labels} labels to ${out}.${changed ? " There are newer answers; write again to include them." : ""}`,
    };
    if (told[status]) find("result").textContent = told[status];
    find("finish").disabled = status === "writing";
  }

  function showProgress() {
    const { progress: { now, checked, right, every, window, curve, asked: all } } = state;
    const rows = [];
    if (now) {
      rows.push(element("p", { class: "figure" }, drawing.percent(now[0]), " ", element("small", {},
        `right, ${drawing.percent(now[1])} to ${drawing.percent(now[2])}`)),
      element("p", { class: "note" }, `${right} of the last ${checked} nodes that chance chose were guessed right before `
        + "you answered, with a 95 % interval. It is an estimate for the nodes that are left."));
    } else {
      rows.push(element("p", { class: "note" }, `Once there is a model, one question in ${every} is put by chance and its guess `
        + "is hidden. They show how often the model is right on the nodes that are left."));
    }
    if (all.length) {
      rows.push(drawing.course({ curve, asked: all }), element("p", { class: "legend" },
        `Solid: nodes that chance chose, the last ${window}, with their interval. Dashed: all nodes asked, of which the model `
        + "chose the hard ones; that line says little about the rest."));
    }
    find("progress").replaceChildren(...rows);
  }

  function showClasses() {
    find("classes").replaceChildren(...state.classes.map((name, index) => {
      const button = element("button", {
        type: "button", class: "class", style: `--class: ${drawing.colour(index)}`, "data-name": name,
      }, element("kbd", {}), element("i", { class: "swatch", "aria-hidden": "true" }),
      element("span", { class: "word" }, name), element("span", { class: "many" }));
      button.addEventListener("click", () => answer("label", name));
      return button;
    }));
    const around = document.querySelector(".answering").classList;
    around.toggle("small", state.classes.length > MANY);
    around.toggle("tall", state.classes.length > TALL);
    showKeys(keys);
    if (!state.classes.length) {
      find("classes").append(element("p", { class: "note" }, "There are no classes yet. Type a name above and press Enter twice."));
    }
    counts();
    filter();
    mark();
  }

  function counts() {
    for (const button of find("classes").querySelectorAll(".class[data-name]")) {
      button.querySelector(".many").textContent = state.counts[button.dataset.name] ?? "";
    }
  }

  // The lowest keys are for the likeliest classes, or for the first ones where no guess is shown. They change with the
  // question, never while it is there: a new class gets a key that is free.
  function showKeys(first) {
    keys = [...new Set([...first, ...state.classes])].slice(0, MOST_KEYS);
    for (const button of find("classes").querySelectorAll(".class[data-name]")) {
      const own = key(button.dataset.name);
      button.querySelector("kbd").textContent = own ?? "";
      button.querySelector("kbd").hidden = !own;
      if (own) button.setAttribute("aria-keyshortcuts", own);
      else button.removeAttribute("aria-keyshortcuts");
    }
  }

  // Which class is guessed, and which one was chosen before.
  function mark() {
    const guess = question?.guess?.[0]?.[0];
    const own = question?.answers.find((one) => one.person === person())?.label;
    for (const button of find("classes").querySelectorAll(".class[data-name]")) {
      button.classList.toggle("guessed", button.dataset.name === guess);
      button.classList.toggle("chosen", button.dataset.name === own);
    }
  }

  function showQuestion(now, { going = false } = {}) {
    question = now;
    correcting = going;
    find("back").hidden = !going;
    find("search").value = "";
    filter();
    if (!now) {
      find("place").textContent = `${state.labels} labels given`;
      find("title").textContent = "Nothing left to ask";
      for (const id of ["id", "content", "guess", "why", "around"]) find(id).replaceChildren();
      find("badge").hidden = true;
      find("announce").textContent = "Nothing is left to ask.";
      return;
    }
    asked += 1;
    showKeys((now.guess ?? []).map(([name]) => name));
    const { node, hidden, given, answers } = now;
    find("place").textContent = going ? "You went to this node" : `${state.labels} labels given${state.given ? `, ${state.given} in the table` : ""}`;
    find("badge").hidden = !hidden;
    find("badge").textContent = "put by chance, guess hidden";
    find("title").textContent = node.title;
    find("id").textContent = node.id === node.title ? "" : node.id;
    find("content").replaceChildren(...content(now));
    find("note").value = answers.find((one) => one.person === person())?.note ?? "";
    openNote(Boolean(find("note").value));
    showGuess(now);
    showAround();
    mark();
    const before = answers.map((one) => `${one.person}: ${one.label ?? "do not know"}`).join(", ");
    if (before) say(`Answered before: ${before}.`);
    else if (given && going) say(`The table says ${given}.`);
    find("announce").textContent = `${find("said").textContent} ${going ? "Correcting" : "Next"}: ${node.title}. `
      + (hidden ? "Put by chance, the guess is hidden. " : now.guess ? `Guess: ${now.guess[0][0]}, ${drawing.percent(now.guess[0][1])}, key 1. ` : "")
      + (asked === 1 ? `Press ${keys.map((name) => `${key(name)} for ${name}`).join(", ")}.` : "");
    scrollTo({ top: 0 });
  }

  function showAround() {
    find("around").replaceChildren(drawing.neighbourhood(question.around, place), drawing.key(question.around, place),
      element("p", { class: "legend" }, around(question.around)), ...drawing.groups(question.around, place));
  }

  function content({ node, row }) {
    const parts = [];
    if (node.picture?.here) parts.push(element("img", { src: `picture/${row}`, alt: `Picture of ${node.title}` }));
    else if (node.picture) parts.push(element("p", { class: "note" }, `No picture below the folder of the table: ${node.picture.text}`));
    if (node.url?.safe) parts.push(element("p", {}, element("a", { href: node.url.text, target: "_blank", rel: "noopener noreferrer" }, node.url.text)));
    else if (node.url) parts.push(element("p", { class: "note" }, node.url.text));
    for (const [name, text] of node.texts) {
      parts.push(element("div", {}, element("p", { class: "words-title" }, name), element("p", { class: "words" }, text)));
    }
    if (node.columns.length) parts.push(g3nn.facts(...node.columns.map(([name, text]) => g3nn.fact(name, text))));
    if (node.more_columns) parts.push(element("p", { class: "note" }, `and ${node.more_columns} more columns`));
    return parts;
  }

  function around({ nodes, degree, labels }) {
    if (!degree) return "This node has no edges: only its columns speak for it.";
    const known = labels.map(([name, many]) => `${many} ${name}`).join(", ");
    const drawn = Math.min(degree, 12);
    return `${degree} neighbours${drawn < degree ? `, ${drawn} of them drawn` : ""}; ${known ? `labelled: ${known}` : "none of them labelled"}. `
      + "A dark outline is a label; the paler a colour, the less sure the guess.";
  }

  async function showGuess(now) {
    find("why").replaceChildren();
    if (now.hidden) return find("guess").replaceChildren(element("p", { class: "note" }, "Hidden until you answer, so that it does not sway you. Keys are in the order of the classes."));
    if (!now.guess) return find("guess").replaceChildren(element("p", { class: "note" }, state.learner.status === "learning" ? "The first model is learning." : "No model yet: it needs labels of two classes."));
    find("guess").replaceChildren(drawing.bars(now.guess.slice(0, MOST_BARS), place, key));
    find("why").replaceChildren(element("p", { class: "note" }, "Working out why…"));
    const found = await get(`why?row=${now.row}`);
    if (question !== now) return;
    const why = found?.why;
    if (!why || why.too_large) {
      return find("why").replaceChildren(element("p", { class: "note" }, why ? "The graph is too large to work out why in a moment; look at the neighbours below." : ""));
    }
    const parts = [];
    if (why.neighbours.length) parts.push(element("h3", {}, "Neighbours that pull towards it (+) or away"), drawing.pulls(why.neighbours.map(([, title, change]) => [title, change])));
    if (why.features.length) parts.push(element("h3", {}, "Own features, roughly"), drawing.pulls(why.features));
    find("why").replaceChildren(...parts);
  }

  function say(text) { find("said").textContent = text; }

  // Acting

  async function ask() {
    work(true);
    const found = await post("next", {});
    work(false);
    if (!found) return;
    showState(found.state);
    showQuestion(found.question);
  }

  // The first model came while a question was open: show what it guesses, and leave the rest, keys too, as it is.
  async function refresh() {
    const before = question;
    const found = await post("next", {});
    if (!found?.question || question !== before || found.question.node.id !== before.node.id) return;
    question = found.question;
    showGuess(question);
    showAround();
    mark();
  }

  // An answer that the server did not confirm is sent again under the same name, so that it counts once.
  let pending = null;

  async function answer(kind, label = null) {
    if (busy || !question) return;
    pending = { kind, label, node: question.node.id, note: find("note").value, request: crypto.randomUUID(), going: correcting };
    await deliver();
  }

  async function deliver() {
    const sent = pending;
    work(true);
    const found = await post("answer", sent);
    work(false);
    if (found || !offline) pending = null;
    if (!found) return;
    const { saved } = found;
    const said = { label: `${question.node.title} is ${saved.label}.`, unknown: `${question.node.title}: do not know.`, skip: `Skipped ${question.node.title}.` }[saved.kind];
    const judged = saved.kind === "label" && saved.guess !== null && !sent.going
      ? (saved.guess === saved.label ? ` The model guessed so too (${drawing.odds(saved.sure)}).` : ` The model had guessed ${saved.guess} (${drawing.odds(saved.sure)}).`) : "";
    say(`Saved: ${said}${judged}`);
    showState(found.state);
    showQuestion(found.question);
    lists.showAnswers();
  }

  async function undo() {
    if (busy) return;
    work(true);
    const found = await post("undo", {});
    work(false);
    if (!found) return;
    showState(found.state);
    if (!found.question) return say("Nothing to undo in this window; earlier answers are in the list below.");
    const { label, kind } = found.question.undone;
    showQuestion(found.question);
    say(`Taken back: ${label ?? (kind === "skip" ? "skipped" : "do not know")}. Answer again.`);
    lists.showAnswers();
  }

  async function open(id) {
    const found = await get(`node?node=${encodeURIComponent(id)}`);
    if (!found) return;
    if (!found.question) return complain(`There is no node with the id ${id}.`);
    say("");
    showQuestion(found.question, { going: true });
    find("title").focus({ preventScroll: true });
  }

  function openNote(flag, focus = false) {
    find("note-box").hidden = !flag;
    find("note-open").setAttribute("aria-expanded", String(flag));
    if (flag && focus) find("note").focus();
  }

  // Classes by typing: Enter takes the first that fits; a new name has to be confirmed.
  function filter() {
    const wanted = find("search").value.trim().toLowerCase();
    const buttons = [...find("classes").querySelectorAll(".class[data-name]")];
    find("classes").querySelector(".new")?.remove();
    for (const button of buttons) {
      button.hidden = !button.dataset.name.toLowerCase().includes(wanted);
      button.classList.remove("first");
    }
    if (!wanted) return null;
    const shown = buttons.filter((button) => !button.hidden);
    const first = shown.find((button) => button.dataset.name.toLowerCase() === wanted)
      ?? shown.find((button) => button.dataset.name.toLowerCase().startsWith(wanted)) ?? shown[0];
    first?.classList.add("first");
    if (!buttons.some((button) => button.dataset.name.toLowerCase() === wanted)) {
      const name = find("search").value.trim();
      const add = element("button", { type: "button", class: "class new" }, `Add “${name}” and choose it`);
      add.addEventListener("click", () => addClass(name));
      find("classes").append(add);
    }
    return first ?? null;
  }

  async function addClass(name) {
    const found = await post("classes", { name });
    if (!found) return;
    find("search").value = "";
    showState(found);
    find("title").focus({ preventScroll: true });
    await answer("label", name);
  }

  find("search").addEventListener("input", filter);
  find("search").addEventListener("keydown", (event) => {
    if (event.key === "Escape") find("title").focus({ preventScroll: true });
    if (event.key !== "Enter" || !find("search").value.trim()) return;
    event.preventDefault();
    const first = filter();
    if (first) {
      find("title").focus({ preventScroll: true });
      answer("label", first.dataset.name);
    } else find("classes").querySelector(".new")?.focus();
  });
  find("note").addEventListener("keydown", (event) => { if (event.key === "Escape") { event.stopPropagation(); find("title").focus({ preventScroll: true }); } });

  find("skip").addEventListener("click", () => answer("skip"));
  find("unknown").addEventListener("click", () => answer("unknown"));
  find("undo").addEventListener("click", undo);
  find("back").addEventListener("click", ask);
  find("note-open").addEventListener("click", () => openNote(find("note-box").hidden, true));
  find("finish").addEventListener("click", async () => { const found = await post("finish", {}); if (found) showState(found); });
  find("keys").addEventListener("click", (event) => {
    const on = event.currentTarget.getAttribute("aria-pressed") !== "true";
    event.currentTarget.setAttribute("aria-pressed", String(on));
    keep("g3nn-keys", String(on));
  });
  if (keep("g3nn-keys") === "false") find("keys").setAttribute("aria-pressed", "false");
  find("person").value = keep("g3nn-person") ?? data.person;
  find("person").addEventListener("change", () => keep("g3nn-person", person()));

  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, textarea, select") || event.altKey || event.repeat) return;
    if ((event.ctrlKey || event.metaKey) && event.key === "z") { event.preventDefault(); return undo(); }
    if (event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape" && correcting) return ask();
    if (find("keys").getAttribute("aria-pressed") !== "true") return;
    const named = /^[1-9]$/.test(event.key) ? keys[Number(event.key) - 1] : undefined;
    if (named !== undefined) return answer("label", named);
    const does = {
      s: () => answer("skip"), d: () => answer("unknown"), u: undo, n: () => openNote(true, true), "/": () => find("search").focus(),
    }[event.key.toLowerCase()];
    if (!does) return;
    event.preventDefault();
    does();
  });

  async function poll() {
    if (pending && !busy) await deliver();
    else if (!busy) {
      const found = await get(`state?session=${session}`);
      if (found && !busy) {
        const first = state === null;
        showState(found);
        if (question && !question.guess && !question.hidden && !correcting && found.learned_from !== null) await refresh();
        if (first || (!question && found.answered < found.nodes)) await ask();
      }
    }
    const soon = !state || !find("alert").hidden || state.learner.status !== "idle" || state.result.status === "writing";
    setTimeout(poll, soon ? 2000 : 15000);
  }

  lists.begin({ get, post, open, place, show: showState });
  ask().then(() => { lists.showAnswers(); setTimeout(poll, 2000); });
})();
