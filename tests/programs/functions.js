// Runs JavaScript functions of known call stacks for the seconds of CPU time that are given, and in a worker, too, if asked.
//
// Every function that works calls `burn_KIND`, whose only callers are those in the test.
'use strict';

const { Worker, isMainThread, workerData } = require('worker_threads');

const KINDS = 'deep odd closure generator async map sort replace reviver forEach method static getter handler bound'.split(' ');
const burn = {};
for (const kind of [...KINDS, 'worker', 'proxy']) {
  const source = `return function burn_${kind}(n) {
    let s = 0;
    for (let i = 0; i < n; i++) s = (s * 31 + i) & 0xffffff;
    return s;
  }`;
  burn[kind] = new Function(source)();
}

function deep(depth) {
  return depth === 0 ? burn.deep(20000) : deep(depth - 1) + 1;
}

function odd(n) {
  return n === 0 ? burn.odd(20000) : even(n - 1) + 1;
}

function even(n) {
  return odd(n - 1) + 1;
}

function makeClosure(x) {
  return function closure(y) {
    return burn.closure(20000) + x + y;
  };
}

function callClosure() {
  return makeClosure(1)(2);
}

function* generate(n) {
  for (let i = 0; i < n; i++) yield burn.generator(5000);
}

function runGenerator() {
  let s = 0;
  for (const value of generate(4)) s += value;
  return s;
}

async function inner() {
  await null;
  return burn.async(20000);
}

function mapNumbers() {
  return [1, 2, 3, 4].map(function mapped(n) {
    return burn.map(5000) + n;
  });
}

function sortNumbers() {
  return [3, 1, 4, 2].sort(function compare(a, b) {
    burn.sort(2000);
    return a - b;
  });
}

function replaceText() {
  return 'a-b-c-d'.replace(/[a-d]/g, function replacer(found) {
    return found + burn.replace(5000);
  });
}

function parseJson() {
  return JSON.parse('{"a":[1,2],"b":3}', function reviver(key, value) {
    burn.reviver(5000);
    return value;
  });
}

function visitAll() {
  new Map([[1, 2], [3, 4]]).forEach(function visit(value) {
    burn.forEach(10000);
  });
}

class Base {
  method() {
    return burn.method(20000);
  }

  static make() {
    return burn.static(20000);
  }

  get value() {
    return burn.getter(20000);
  }
}

class Derived extends Base {
  method() {
    return super.method() + 1;
  }
}

function handler() {
  try {
    throw new Error('x');
  } catch (error) {
    return burn.handler(20000);
  }
}

function target(n) {
  return burn.bound(20000) + n;
}

function callProxy() {
  const proxy = new Proxy({}, {
    get: function trap() {
      return burn.proxy(20000);
    },
  });
  return proxy.anything;
}

const bound = target.bind(null, 1);

function isOver(seconds) {
  const { user, system } = process.cpuUsage();
  return user + system > 1e6 * seconds;
}

async function main(seconds) {
  const derived = new Derived();
  while (!isOver(seconds)) {
    deep(100);
    odd(50);
    callClosure();
    runGenerator();
    await inner();
    mapNumbers();
    sortNumbers();
    replaceText();
    parseJson();
    visitAll();
    derived.method();
    Derived.make();
    derived.value;
    handler();
    bound();
    callProxy();
  }
}

function inWorker(seconds) {
  while (!isOver(seconds)) burn.worker(100000);
}

const seconds = Number(process.argv[2]);
if (isMainThread) {
  if (process.argv[3] === 'worker') new Worker(__filename, { argv: [process.argv[2]], workerData: seconds });
  main(seconds);
} else {
  inWorker(workerData);
}
