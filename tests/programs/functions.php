<?php
// Runs PHP functions of known call stacks for the seconds that are given.
//
// Every function that works calls `burn_KIND`, whose only callers are those in the test.

function compute(int $n): int {
    $sum = 0;
    for ($i = 0; $i < $n; $i++) {
        $sum = ($sum * 31 + $i) & 0xffffff;
    }
    return $sum;
}

foreach (['deep', 'odd', 'generator', 'callback', 'method', 'fiber', 'included', 'handler'] as $kind) {
    eval("function burn_$kind(int \$n) { return compute(\$n); }");
}

function deep(int $depth) {
    return $depth ? deep($depth - 1) : burn_deep(20000);
}

function odd(int $n) {
    return $n ? even($n - 1) : burn_odd(10000);
}

function even(int $n) {
    return odd($n - 1);
}

function generator() {
    for ($i = 0; $i < 3; $i++) {
        yield burn_generator(5000);
    }
}

function delegating() {
    yield from generator();
}

function outermost() {
    yield from delegating();
}

function run_generator() {
    foreach (outermost() as $_) {
    }
}

function sort_numbers() {
    $numbers = range(10, 1);
    usort($numbers, function ($a, $b) {
        burn_callback(1000);
        return $a <=> $b;
    });
}

class Base {
    public function method() {
        return burn_method(10000);
    }
}

class Derived extends Base {
    public function method() {
        return parent::method();
    }

    public static function call() {
        return array_map(fn($object) => $object->method(), [new Derived()]);
    }
}

function include_file(string $path) {
    include $path;
}

function run_fiber() {
    $fiber = new Fiber(function () {
        in_fiber();
    });
    $fiber->start();
}

function in_fiber() {
    burn_fiber(10000);
}

function handler() {
    try {
        throw new Exception('');
    } catch (Exception $e) {
        burn_handler(10000);
    }
}

function find_words(string $text) {
    return preg_match_all('/(\\w+)(,|\\d+ )/', $text);
}

$text = str_repeat('a word, 17 ', 2000);
$path = tempnam(sys_get_temp_dir(), 'included');
file_put_contents($path, "<?php\nburn_included(10000);\n");
$end = microtime(true) + (float) $argv[1];
while (microtime(true) < $end) {
    deep(100);
    odd(50);
    run_generator();
    sort_numbers();
    Derived::call();
    include_file($path);
    run_fiber();
    handler();
    find_words($text);
}
unlink($path);
