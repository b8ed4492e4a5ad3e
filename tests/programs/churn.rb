# Makes and drops functions for the seconds that are given: `outer_N` alone calls `inner_N`, which alone calls `leaf_N`.

SOURCE = <<~RUBY
  def leaf_N(n)
    s = N
    i = 0
    while i < n
      s = (s * 31 + i) & 0xffffff
      i += 1
    end
    s
  end

  def inner_N(n) = leaf_N(n) ^ leaf_N(n + 1)

  def outer_N(n) = inner_N(n) + inner_N(n + 2)
RUBY

last = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ARGV[0].to_f
number = 0
while Process.clock_gettime(Process::CLOCK_MONOTONIC) < last
  functions = Class.new
  functions.class_eval(SOURCE.gsub('N', number.to_s), "module_#{number}.rb")
  functions.new.send("outer_#{number}", 500)
  number += 1
  GC.start if number % 500 == 0
end
