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

function outer()
{
    array_map(function ($unused) {
        Waiter::middle(2);
    }, [1]);
}

outer();
