# Sleeps in methods with known callers, in two threads.

def wait_innermost
  sleep 100_000
end

def middle(depth)
  depth.zero? ? wait_innermost : middle(depth - 1)
end

def outer
  [1].each { middle(2) }
end

def acquire
  Queue.new.pop
end

Thread.new { acquire }
outer
