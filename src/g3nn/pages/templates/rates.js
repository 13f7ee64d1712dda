// Accuracy against the amount of noise: a chart for each kind of noise and dataset, with a line for each model.
(() => {
  const { data, number, plain, colour, figure } = g3nn;
  const holder = document.getElementById("rates");
  if (!holder) return;
  const SERIES = 4;
  const DASHES = ["solid", "dash", "dot"];

  const labels = [...new Set(data.rates.flatMap(({ lines }) => lines.map(({ label }) => label)))];

  // Ours stands out; of the others, every fourth has the same colour and another dash.
  function style({ label, ours, quoted }) {
    const place = labels.indexOf(label);
    if (ours) return { color: colour("accent"), width: 3 };
    return {
      color: colour(quoted ? "muted" : `series-${place % SERIES}`), width: 1.5,
      dash: quoted ? "dot" : DASHES[Math.floor(place / SERIES) % DASHES.length],
    };
  }

  const build = ({ lines }) => () => ({
    traces: lines.map((line) => ({
      name: plain(line.label), mode: "lines+markers", x: line.rates, y: line.means, line: style(line), marker: { size: 5 },
      error_y: { type: "data", array: line.stds.map((std) => std ?? 0), thickness: 1, width: 0 },
      text: line.means.map((mean, place) => `${plain(line.label)} at ${line.rates[place]} %: ${number(mean)}`),
      hovertemplate: "%{text}<extra></extra>",
    })),
    height: 320, x: ["percent of the edges", {}], y: ["accuracy", { tickformat: ".2f" }],
    layout: { showlegend: true, legend: { orientation: "h", y: -0.25, font: { size: 11 } } },
  });

  holder.append(...data.rates.map((panel) => figure(panel.title, build(panel), panel.title)));
  g3nn.drawFigures();
})();
