// The texts on the page whose contrast with what is behind them is below the limit.
(limit) => {
  const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", {
    willReadFrequently: true,
  });

  function parts(colour) {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  }

  function behind(element) {
    if (!element) return [255, 255, 255];
    const [red, green, blue, opacity] = parts(getComputedStyle(element).backgroundColor);
    const share = opacity / 255;
    if (share === 1) return [red, green, blue];
    const below = behind(element.parentElement);
    return [red, green, blue].map((value, index) => share * value + (1 - share) * below[index]);
  }

  function luminance(colour) {
    const [red, green, blue] = colour.map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }

  function contrast(element) {
    const both = [luminance(parts(getComputedStyle(element).color)), luminance(behind(element))].sort((a, b) => a - b);
    return (both[1] + 0.05) / (both[0] + 0.05);
  }

  const hasText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const texts = [...document.body.querySelectorAll("*")].filter((element) =>
    !element.closest("svg, script, style, :disabled") && hasText(element) && element.checkVisibility());
  const low = texts.map((element) => [contrast(element), element.className, element.textContent.trim()]);
  return { texts: texts.length, low: low.filter(([found]) => found < limit) };
}
