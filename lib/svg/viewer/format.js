// Numbers as text: weights in scaled units, shares, changes.

/** @type {Record<string, [number, string][]>} Units from the smallest, with their number of base units. */
const UNITS = {
    time: [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"], [120e9, "min"], [7200e9, "h"]],
    bytes: [[1, "B"], [2 ** 10, "KiB"], [2 ** 20, "MiB"], [2 ** 30, "GiB"], [2 ** 40, "TiB"]],
};

/**
 * The number of base units in the units that weights can have, by their names.
 *
 * @type {Record<string, [string, number]>}
 */
const KNOWN_UNITS = {
    ns: ["time", 1], nanoseconds: ["time", 1], us: ["time", 1e3], "µs": ["time", 1e3], microseconds: ["time", 1e3],
    ms: ["time", 1e6], milliseconds: ["time", 1e6], s: ["time", 1e9], sec: ["time", 1e9], seconds: ["time", 1e9],
    bytes: ["bytes", 1], B: ["bytes", 1], KB: ["bytes", 2 ** 10], KiB: ["bytes", 2 ** 10],
};

/**
 * Returns a number with commas between thousands. Halves are rounded to even, as fg-svg does. To create an
 * `Intl.NumberFormat` takes as long as to draw a hundred frames.
 *
 * @param {number} number
 * @param {number} digits number of digits after the point
 */
function formatFixed(number, digits) {
    const size = Math.abs(number), isHalf = size * 2 ** (digits + 1) % 2 === 1;
    let text = size.toFixed(digits);
    // `toFixed` rounds halves up.
    if (isHalf && "13579".includes(text[text.length - 1])) text = (size - 0.5 / 10 ** digits).toFixed(digits);
    if (size >= 999) text = text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
    return number < 0 && /[1-9]/.test(text) ? `-${text}` : text;
}

/** @param {number} number */
function formatCount(number) {
    return formatFixed(number, 0);
}

/**
 * Returns a number with three digits, or all of a larger integer.
 *
 * @param {number} number
 */
function formatThreeDigits(number) {
    const size = Math.abs(number);
    return formatFixed(number, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/**
 * Returns a number of things in words, such as `1 sample`.
 *
 * @param {number} number
 * @param {string} things plural
 */
function formatThings(number, things) {
    const isWhole = Number.isInteger(Number(number.toFixed(6)));
    const text = isWhole ? formatCount(number) : formatThreeDigits(number);
    const isOne = text === "1" && things.endsWith("s") && !things.endsWith("ss");
    return `${text} ${isOne ? things.slice(0, -1) : things}`;
}

/**
 * Returns a weight in the unit that suits it, such as `41.4 s`.
 *
 * @param {number} weight
 * @param {Settings} settings
 */
function formatWeight(weight, { countName, factor }) {
    const [kind, scale] = KNOWN_UNITS[countName.replace("scaled ", "")] ?? [], size = weight * factor * (scale ?? 1);
    if (!kind) return formatThings(size, countName);
    if (size === 0) return kind === "time" ? "0 s" : "0 B";
    const units = UNITS[kind], [, unit] = units.findLast(([least]) => Math.abs(size) >= least * 0.9995) ?? units[0];
    /** @type {Record<string, number>} */
    const longUnits = { min: 60e9, h: 3600e9 };
    const divisor = longUnits[unit] ?? units.find(([, name]) => name === unit)?.[0] ?? 1;
    const number = size / divisor;
    return `${Number.isInteger(number) && divisor === 1 ? formatCount(number) : formatThreeDigits(number)} ${unit}`;
}

/**
 * Returns a weight as the input has it, such as `41,402,816 us`.
 *
 * @param {number} weight
 * @param {Settings} settings
 */
function formatExactWeight(weight, { countName, factor }) {
    // Scrapers expect a whole number.
    return formatThings(Number(formatFixed(weight * factor, 0).replaceAll(",", "")), countName);
}

/**
 * Returns a share of a whole, such as `12.1 %`.
 *
 * @param {number} weight
 * @param {number} whole
 */
function formatShare(weight, whole) {
    const percent = whole > 0 ? 100 * weight / whole : 0;
    if (percent > 0 && percent < 0.005) return "<0.01 %";
    if (percent === 0 || percent === 100) return `${percent} %`;
    if (percent > 99.995) return "100 %";
    return `${percent >= 99.95 ? formatFixed(percent, 2) : formatThreeDigits(percent)} %`;
}

/**
 * Returns a difference with its sign.
 *
 * @param {number} number
 * @param {(size: number) => string} format
 */
function formatSigned(number, format) {
    const text = format(Math.abs(number));
    return /[1-9]/.test(text) ? (number < 0 ? "−" : "+") + text : text;
}

/**
 * Returns how a share changed, such as `12.1 % → 18.7 % (+6.6 points, ×1.5)`.
 *
 * @param {number} before share from 0 to 1
 * @param {number} after
 */
function formatChange(before, after) {
    const shares = `${formatShare(before, 1)} → ${formatShare(after, 1)}`;
    return before === 0 && after === 0 ? "0 %" : `${shares} (${formatPoints(before, after)})`;
}

/**
 * Returns the difference of two shares in percentage points, and their ratio unless the first is too small for it.
 *
 * @param {number} before share from 0 to 1
 * @param {number} after
 */
function formatPoints(before, after) {
    const points = `${formatSigned(100 * (after - before), formatPoint)} points`;
    if (before === 0) return `new, ${points}`;
    if (after === 0) return `gone, ${points}`;
    return before >= 0.001 ? `${points}, ×${formatRatio(after / before)}` : points;
}

/** @param {number} points */
function formatPoint(points) {
    return formatFixed(points, points >= 0.995 ? 1 : 2);
}

/** @param {number} ratio */
function formatRatio(ratio) {
    return formatFixed(ratio, ratio >= 9.95 ? 0 : ratio >= 1.05 ? 1 : 2);
}

/**
 * Formats a time with as many decimals as tell it from the next one of a scale, such as `1.5 ms` or `2:20 h`.
 *
 * @param {number} time in nanoseconds
 * @param {number} step distance to the next time
 * @param {number} longest the longest time beside which it is shown
 */
function formatDuration(time, step, longest = time) {
    const minutes = Math.round(time / 60e9), padded = String(minutes % 60).padStart(2, "0");
    if (longest >= 7200e9 && step >= 60e9) return `${Math.floor(minutes / 60)}:${padded} h`;
    const [size, unit] = step >= 60e9 || (longest >= 120e9 && step >= 1e9) ? [60e9, "min"]
        : longest >= 1e9 ? [1e9, "s"]
        : longest >= 1e6 ? [1e6, "ms"] : [1e3, "µs"];
    const decimals = time === 0 ? 0 : Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size) - 1e-9)));
    return `${(time / size).toFixed(decimals)} ${unit}`;
}

/**
 * Formats a weight on a scale: unlike others, it differs from the next one.
 *
 * @param {number} weight
 * @param {number} step distance to the next weight
 * @param {number} largest the largest weight of the scale
 * @param {Settings} settings
 */
function formatTick(weight, step, largest, { countName, factor }) {
    const [kind, unit = 1] = KNOWN_UNITS[countName] ?? [], scale = unit * factor;
    if (kind === "time") return formatDuration(weight * scale, step * scale, largest * scale);
    const decimals = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step * factor) - 1e-9)));
    return `${formatFixed(weight * factor, decimals)} ${countName}`;
}
