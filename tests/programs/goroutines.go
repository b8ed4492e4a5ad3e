// goroutines: one goroutine splits and sorts strings for a second. Its stack ends with a return address of 0.
package main

import (
	"sort"
	"strings"
	"time"
)

func work() int {
	words := strings.Split(strings.Repeat("b,a,", 100), ",")
	sort.Strings(words)
	return len(words)
}

func main() {
	start, sum := time.Now(), 0
	for time.Since(start) < time.Second {
		sum += work()
	}
	if sum == 0 {
		panic("no work was done")
	}
}
