"use strict";

// Fills the page of a classifier.
(() => {
  const { data, number } = g3nn;
  const { classes } = data;

  function classTable() {
    const whole = (label, place) => ({ label, value: (row) => row[place], show: (row) => row[place].toLocaleString("en") });
    const share = (label, place) => ({ label, value: (row) => row[place], show: (row) => number(row[place], 2) });
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
