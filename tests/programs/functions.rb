# Runs Ruby methods of known call stacks for the seconds that are given.
#
# Every method that works calls `burn_KIND`, whose only callers are those in the test.

%w[deep odd block fiber sort method thread handler].each do |kind|
  eval("def burn_#{kind}(n)\n  s = 0\n  i = 0\n  while i < n\n    s += i * i\n    i += 1\n  end\n  s\nend", nil, 'burn.rb', 1)
end

def deep(depth)
  depth.zero? ? burn_deep(20_000) : deep(depth - 1)
end

def odd(n)
  n.zero? ? burn_odd(10_000) : even(n - 1)
end

def even(n)
  odd(n - 1)
end

def call_block
  3.times { burn_block(5_000) }
end

def in_fiber
  burn_fiber(10_000)
end

def run_fiber
  Fiber.new { in_fiber }.resume
end

def sort_numbers
  (1..10).sort_by do |n|
    burn_sort(1_000)
    -n
  end
end

class Base
  def method
    burn_method(10_000)
  end
end

class Derived < Base
  def method
    super
  end

  def self.call
    new.send(:method)
  end
end

def run_thread
  Thread.new { burn_thread(10_000) }.join
end

def handler
  raise ArgumentError
rescue ArgumentError
  burn_handler(10_000)
end

def main(seconds)
  last = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  while Process.clock_gettime(Process::CLOCK_MONOTONIC) < last
    deep(100)
    odd(50)
    call_block
    run_fiber
    sort_numbers
    Derived.call
    run_thread
    handler
  end
end

main(Float(ARGV[0]))
