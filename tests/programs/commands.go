// commands: starts threads and commands for a second. Each goroutine keeps its thread, which ends with it.
package main

import (
	"os/exec"
	"runtime"
	"sync"
	"time"
)

func start() {
	var done sync.WaitGroup
	for range [4]int{} {
		done.Add(1)
		go func() {
			runtime.LockOSThread()
			done.Done()
		}()
	}
	if err := exec.Command("/bin/true").Run(); err != nil {
		panic(err)
	}
	done.Wait()
}

func main() {
	begin := time.Now()
	for time.Since(begin) < time.Second {
		start()
	}
}
