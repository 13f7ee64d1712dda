// Colours of classes, by number. One is chosen after the other, each as far from those before as can be, so that few
// classes are far apart and sixty can still be told from each other. A class keeps its colour when others join.
const palette = (() => {
  const LIGHT = [0.52, 0.4, 0.64, 0.46, 0.58]; // The first colour is a plain blue.
  const CHROMA = [0.12, 0.18, 0.06];
  const DARKER = 0.22; // On a dark page all are so much lighter: both stand out from what is behind them.
  const HUES = 36;
  const FIRST = 255;

  const lab = ([lightness, chroma, hue]) => {
    const angle = hue * Math.PI / 180;
    return [lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)];
  };

  // Whether a screen can show it: OKLab to linear sRGB (Ottosson, 2020).
  function shows(colour) {
    const [lightness, a, b] = lab(colour);
    const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
    return [
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ].every((part) => part >= 0 && part <= 1);
  }

  const lighter = ([lightness, ...rest]) => [lightness + DARKER, ...rest];
  const hues = Array.from({ length: HUES }, (_, step) => (FIRST + step * 360 / HUES) % 360);
  const left = LIGHT.flatMap((lightness) => CHROMA.flatMap((chroma) => hues.map((hue) => [lightness, chroma, hue])))
    .filter((one) => shows(one) && shows(lighter(one)))
    .map((colour) => ({ colour, point: lab(colour), distance: Infinity }));
  const chosen = [];

  function choose() {
    const last = chosen.at(-1);
    for (const one of left) {
      if (last) one.distance = Math.min(one.distance, Math.hypot(...one.point.map((part, axis) => part - last.point[axis])));
    }
    chosen.push(left.reduce((best, one) => (one.distance > best.distance ? one : best)));
  }

  const text = ([lightness, chroma, hue]) => `oklch(${lightness.toFixed(2)} ${chroma} ${hue})`;

  // After some hundreds they begin again.
  function colour(place) {
    const index = place % left.length;
    while (chosen.length <= index) choose();
    const found = chosen[index].colour;
    return `light-dark(${text(found)}, ${text(lighter(found))})`;
  }

  return { colour };
})();
