<?php
// Makes and drops code for the seconds that are given: that of `outer_N.php` alone includes `inner_N.php`.

function compute(int $n): int {
    $sum = 0;
    for ($i = 0; $i < $n; $i++) {
        $sum = ($sum * 31 + $i) & 0xffffff;
    }
    return $sum;
}

$folder = sys_get_temp_dir() . '/churn-' . getmypid();
mkdir($folder);
for ($number = 0; $number < 100; $number++) {
    $padding = str_repeat('$x = 1; ', $number % 7);
    $return = "return compute(300) ^ compute(400);";
    file_put_contents("$folder/inner_$number.php", "<?php $padding\n$return\n");
    file_put_contents("$folder/outer_$number.php", "<?php $padding\nreturn include __DIR__ . '/inner_$number.php';\n");
}
$end = microtime(true) + (float) $argv[1];
while (microtime(true) < $end) {
    include "$folder/outer_" . random_int(0, $number - 1) . '.php';
}
array_map('unlink', glob("$folder/*"));
rmdir($folder);
