// Writes the fg-collapse command that selects the same samples.

/**
 * Returns the command that selects the samples that are shown. The element of the map says how they were filtered
 * before. Returns undefined if no options select the thread.
 *
 * @param {HTMLElement} element
 * @param {{ samples: Samples, selection: TimeSelection, thread: number | undefined }} shown
 */
function formatCommand({ dataset }, { samples, selection, thread }) {
    /** @param {string} name */
    const words = name => (dataset[name] ? dataset[name].split("\n") : []);
    const [first, last] = [samples.times[0], samples.times[samples.count - 1]];
    const [low, high] = words("offset").map(Number);
    const isBounded = words("bounded").length > 0;
    const { time, offset } = formatSelection({
        from: isBounded ? Math.max(selection.from, first) : selection.from,
        to: isBounded ? Math.min(selection.to, last + 1) : selection.to,
        low: Math.max(selection.low, low),
        high: Math.min(selection.high, high),
    }, samples.base);
    let threads = [...words("comms"), ...words("pids"), ...words("tids")];
    if (thread !== undefined) {
        const [, comm = "", pid, tid] = samples.names[thread].match(/^(?:(.*) )?(?:(\d+)\/)?(\d+)$/s) ?? [];
        if (tid === undefined) return undefined;
        // A name with a replacement for a byte that cannot be shown is not the real name.
        const isExact = !/\\u\{|\ufffd/.test(comm);
        // A word with a leading dash would be an option.
        const named = comm.startsWith("-") ? [`--comm=${comm}`] : ["--comm", comm];
        threads = [...(isExact ? named : words("comms")), ...(pid ? ["-p", pid] : words("pids")), "-t", tid];
    }
    const selected = [...(time ? ["--time", time] : []), ...(offset ? ["--offset", offset] : [])];
    const options = ["--weight", ...words("weight"), ...selected, ...words("always"), ...threads];
    return ["fg-collapse", ...options].map(quoteWord).join(" ");
}

/**
 * Quotes a word for the shell if it needs it.
 *
 * @param {string} word
 */
function quoteWord(word) {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
