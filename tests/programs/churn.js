'use strict';
// Makes and drops functions for the seconds that are given: `outer_N` alone calls `inner_N`, which alone calls `leaf_N`. They
// are compiled, with the calls inlined.

const SOURCE = `
function leaf_N(x, i) {
  let s = x;
  for (let k = 0; k < 6; k++) s = (s * 31 + i + k) & 0xffffff;
  return s;
}
function inner_N(x, i) { return leaf_N(x, i) ^ leaf_N(x + 1, i); }
function outer_N(n) {
  let s = N;
  for (let i = 0; i < n; i++) s = inner_N(s, i);
  return s;
}
return outer_N;`;

const last = Date.now() + 1000 * process.argv[2];
let live = [];
let number = 0;
while (Date.now() < last) {
  live = live.slice(20);
  while (live.length < 40) live.push(new Function(SOURCE.replaceAll('N', number++))());
  for (let round = 0; round < 10; round++) for (const outer of live) outer(4000);
  // The code of functions that were dropped is freed.
  for (let i = 0; i < 5000; i++) new Array(100).fill(i);
}
