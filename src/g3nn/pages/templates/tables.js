// Tables that can be sorted, searched and turned like pages. Only the rows on the page are in the document.
const tables = (() => {
  const { data, element, missing, number, whole } = g3nn;
  const natural = new Intl.Collator("en", { numeric: true });

  // A missing value comes last in both directions.
  function compare(one, other, direction) {
    if (missing(one) || missing(other)) return Number(missing(one)) - Number(missing(other));
    if (typeof one === "string") return direction * natural.compare(one, other);
    return direction * (one - other);
  }

  // A list of choices, the first of which is to choose nothing.
  function chooser({ label, options }, caption) {
    const made = element("select", { "aria-label": `${label}: ${caption}` },
      element("option", { value: -1 }, `${label}: any`),
      ...options.map(({ text }, index) => element("option", { value: index }, `${label}: ${text}`)));
    return { element: made, test: (row) => options[made.value]?.test(row) ?? true };
  }

  // A sheet would run text that begins like a formula; an apostrophe keeps it text.
  const FORMULA = /^\s*[=+\-@＝＋－＠]/;

  function field(value) {
    if (missing(value) || Number.isNaN(value)) return "";
    const text = String(value);
    const harmless = typeof value === "number" || (text.trim() && Number.isFinite(Number(text))) || !FORMULA.test(text);
    const safe = harmless ? text : `'${text}`;
    return /[",\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  function save(caption, columns, rows) {
    const lines = [columns.map(({ label }) => label), ...rows.map((row) => columns.map(({ value }) => value(row)))];
    // The mark at the beginning tells Excel that this is UTF-8.
    const text = `\ufeff${lines.map((line) => line.map(field).join(",")).join("\r\n")}\r\n`;
    const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    element("a", { href: address, download: `${caption.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  // columns: {label, value(row), show(row) [the value], word: true for text}. Rows keep their order until a column is
  // chosen. options: search(row) gives the texts to search in, without it there is no search; size of a page; empty,
  // what is said where there are no rows; mark(row), the class of a row; filters, [{label, options: [{text, test(row)}]}];
  // also, further columns of the file. A file has the rows that match, all pages of them; `files` of a column,
  // [{label, value}], stand there in its place. The element returned has refill(rows).
  function paged(caption, columns, rows, options = {}) {
    const { search = null, size = 10, empty = "Nothing to list.", mark = () => null, filters = [], also = [] } = options;
    let all = rows;
    let page = 0;
    let order = null;
    const body = element("tbody");
    const input = element("input", { type: "search", placeholder: "Search", "aria-label": `Search: ${caption}` });
    const status = element("span", { class: "shown", role: "status" });
    const turner = (label, sign) =>
      element("button", { type: "button", class: "quiet", "aria-label": `${label} page: ${caption}` }, sign);
    const earlier = turner("Previous", "←");
    const later = turner("Next", "→");
    const saver = element("button", { type: "button", class: "quiet save", "aria-label": `Download as CSV: ${caption}` },
      "CSV");
    const choosers = filters.map((filter) => chooser(filter, caption));
    const nothing = element("p", { class: "empty" });
    const heads = columns.map((column, index) => {
      const button = element("button", { type: "button" }, column.label);
      const head = element("th", { scope: "col", "aria-sort": "none", class: column.word ? "word" : null }, button);
      button.addEventListener("click", () => sort(index, head.getAttribute("aria-sort") === "ascending" ? -1 : 1));
      return head;
    });
    const table = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
      element("table", { class: "plain" }, element("thead", {}, element("tr", {}, ...heads)), body));
    const bar = element("div", { class: "table-bar" }, search && input,
      ...choosers.map((one) => one.element), element("span", { class: "turn" }, status, saver, earlier, later));

    function sort(index, direction) {
      heads.forEach((head) => head.setAttribute("aria-sort", "none"));
      heads[index].setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      order = (one, other) => compare(columns[index].value(one), columns[index].value(other), direction);
      fill(0);
    }

    function matching() {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const chosen = all.filter((row) => choosers.every((one) => one.test(row)));
      if (!words.length) return chosen;
      return chosen.filter((row) => {
        const text = search(row).join("\n").toLowerCase();
        return words.every((word) => text.includes(word));
      });
    }

    const cell = (column, row) => {
      const value = (column.show ?? column.value)(row) ?? "–";
      return element("td", { class: column.word ? "word" : null }, value instanceof Node ? value : String(value));
    };

    const listed = () => (order ? matching().sort(order) : matching());

    function fill(turned) {
      page = turned;
      const left = listed();
      const start = page * size;
      const shown = left.slice(start, start + size);
      body.replaceChildren(...shown.map((row) => element("tr", { class: mark(row) },
        ...columns.map((column) => cell(column, row)))));
      const range = left.length > size ? `${whole(start + 1)} to ${whole(start + shown.length)} of ` : "";
      status.textContent = shown.length ? range + whole(left.length) : "";
      nothing.textContent = all.length ? "No row matches." : empty;
      nothing.hidden = left.length > 0;
      table.hidden = !left.length;
      input.hidden = !all.length;
      bar.hidden = !all.length;
      earlier.hidden = later.hidden = left.length <= size;
      earlier.disabled = page === 0;
      later.disabled = start + size >= left.length;
    }

    earlier.addEventListener("click", () => fill(page - 1));
    later.addEventListener("click", () => fill(page + 1));
    input.addEventListener("input", () => fill(0));
    choosers.forEach((one) => one.element.addEventListener("change", () => fill(0)));
    saver.addEventListener("click", () =>
      save(caption, [...columns.flatMap((column) => column.files ?? [column]), ...also], listed()));
    fill(0);
    return Object.assign(element("div", { class: "paged" }, bar, table, nothing), {
      refill(changed) {
        all = changed;
        fill(0);
      },
    });
  }

  // A table of plain rows. columns: label -> digits after the point; null for words; "name" for numbers of the names of
  // the page, which are shown with their colour. A row that ends with "chosen" is marked. A long table has a search.
  function simple({ caption, columns, rows }) {
    const shown = Object.entries(columns).map(([label, digits], index) => {
      const value = (row) => (digits === "name" ? data.names[row[index]] : row[index]);
      const show = (row) => (digits === "name" ? parts.named(row[index]) : number(row[index], digits));
      return digits === null ? { label, word: true, value } : { label, word: digits === "name", value, show };
    });
    const words = (row) => shown.filter(({ word }) => word).map(({ value }) => String(value(row) ?? ""));
    return paged(caption, shown, rows, {
      search: rows.length > 15 ? words : null, size: rows.length > 15 ? 10 : 15,
      mark: (row) => (row.at(-1) === "chosen" ? "chosen" : null),
    });
  }

  return { paged, simple, chooser };
})();
