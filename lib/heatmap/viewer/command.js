// The command of fg-collapse that takes the samples which are shown, by what the map's element tells of how they were
// chosen. Undefined if no options tell them apart from others.

function commandOf({ dataset }, { samples, part, thread, weighs }) {
    const words = name => (dataset[name] ? dataset[name].split("\n") : []);
    const [first, last] = [samples.times[0], samples.times[samples.count - 1]], [low, high] = words("offset").map(Number);
    const isBounded = words("bounded").length > 0;
    const { time, offset } = partTexts({
        from: isBounded ? Math.max(part.from, first) : part.from,
        to: isBounded ? Math.min(part.to, last + 1) : part.to,
        low: Math.max(part.low, low),
        high: Math.min(part.high, high),
    }, samples.base);
    let chosen = [...words("comms"), ...words("pids"), ...words("tids")];
    if (thread !== undefined) {
        const [, comm = "", pid, tid] = samples.names[thread].match(/^(?:(.*) )?(?:(\d+)\/)?(\d+)$/s) ?? [];
        if (tid === undefined) return undefined;
        // What stands for a byte that cannot be shown is no name.
        const isName = !/\\u\{|\ufffd/.test(comm);
        // What begins with a dash would be an option.
        const named = comm.startsWith("-") ? [`--comm=${comm}`] : ["--comm", comm];
        chosen = [...(isName ? named : words("comms")), ...(pid ? ["-p", pid] : words("pids")), "-t", tid];
    }
    const options = [...(time ? ["--time", time] : []), ...(offset ? ["--offset", offset] : []), ...words("always"), ...chosen];
    return ["fg-collapse", "--weight", weighs, ...options].map(quoted).join(" ");
}

// A word as shells take it to the letter.
function quoted(word) {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
