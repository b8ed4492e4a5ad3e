-- Work for releases of Lua: tables, strings, sorting, closures, patterns and garbage.
local words, counts, state = {}, {}, 42
local function random(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return state % n + 1
end
for n = 1, 60000 do words[n] = "w" .. random(5000) .. "x" .. n % 7 end
for round = 1, 4 do
    for _, word in ipairs(words) do
        local stem = word:gsub("x%d", ""):upper()
        counts[stem] = (counts[stem] or 0) + 1
    end
end
local keys = {}
for key in pairs(counts) do keys[#keys + 1] = key end
table.sort(keys, function(a, b)
    if counts[a] ~= counts[b] then return counts[a] > counts[b] end
    return a < b
end)
local function fibonacci(n) return n < 2 and n or fibonacci(n - 1) + fibonacci(n - 2) end
local sum = fibonacci(26)
local object = setmetatable({}, { __index = function(_, key) return key * 2 end })
for n = 1, 500000 do sum = sum + object[n] end
local parts = {}
for n = 1, 100000 do parts[n] = string.format("%d:%s", n, words[n % #words + 1]) end
print(#keys, sum, #table.concat(parts, ","))
