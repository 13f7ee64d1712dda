"use strict";

// Fills the page of a classifier.
(() => {
  const { data, number } = g3nn;
  const { classes } = data;

  function classTable() {
    const shown = (label, place, show) => ({ label, value: (row) => row[place], show: (row) => show(row[place]) });
    const whole = (label, place) => shown(label, place, (count) => count.toLocaleString("en"));
    const share = (label, place) => shown(label, place, (value) => number(value, 2));
    const columns = [
      { label: "class", value: ([name]) => classes[name], show: ([name]) => parts.named(name), word: true },
      whole("training labels", 1), whole("validation labels", 2), whole("nodes answered", 3),
      share("mean probability", 4), share("found on validation", 5),
    ];
    const many = classes.length > 15;
    return tables.paged("Classes", columns, data.class_rows,
      { search: many ? ([name]) => [classes[name]] : null, size: many ? 10 : 15 });
  }

  walk.fill("classes-table", classTable());
  walk.fill("panel-body", ...charts.panel());
  walk.fill("validation-body", ...charts.validation());
  walk.start();
})();
