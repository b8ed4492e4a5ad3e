<?php
// Sleeps in functions with known callers.

class Waiter
{
    public function wait_innermost()
    {
        sleep(100000);
    }

    public static function middle($depth)
    {
        $depth == 0 ? (new Waiter())->wait_innermost() : Waiter::middle($depth - 1);
    }
}

function delegating($depth)
{
    if ($depth == 0) {
        yield Waiter::middle(2);
    } else {
        yield from delegating($depth - 1);
    }
}

function outer()
{
    array_map(function ($unused) {
        foreach (delegating(2) as $value);
    }, [1]);
}

outer();
