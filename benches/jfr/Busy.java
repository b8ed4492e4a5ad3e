import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Twelve threads that allocate, park and wait for a lock below random call paths, for a number of seconds. */
public class Busy {
    private static final int THREADS = 12;
    private static final Object LOCK = new Object();
    private static volatile Object sink;

    private static int descend(int depth, Random random) {
        if (depth <= 0) {
            return work(random);
        }
        switch (random.nextInt(4)) {
            case 0:
                return first(depth, random);
            case 1:
                return second(depth, random);
            case 2:
                return third(depth, random);
            default:
                return fourth(depth, random);
        }
    }

    private static int first(int depth, Random random) {
        return descend(depth - 1, random) + 1;
    }

    private static int second(int depth, Random random) {
        return descend(depth - 1, random) ^ 3;
    }

    private static int third(int depth, Random random) {
        return descend(depth - 1, random) * 5;
    }

    private static int fourth(int depth, Random random) {
        return descend(depth - 1, random) - 7;
    }

    private static int work(Random random) {
        switch (random.nextInt(5)) {
            case 0:
                Map<String, Integer> map = new TreeMap<>();
                IntStream.range(0, 200).forEach(value -> map.put("k" + random.nextInt(1000), value));
                sink = map;
                return map.size();
            case 1:
                return IntStream.range(0, 500).mapToObj(Integer::toString).collect(Collectors.toList()).hashCode();
            case 2:
                byte[] bytes = new byte[4096 + random.nextInt(60000)];
                sink = bytes;
                return Arrays.hashCode(bytes);
            case 3:
                synchronized (LOCK) {
                    long sum = 0;
                    for (int value = 0; value < 20000; value++) {
                        sum += value * 31 ^ sum;
                    }
                    return (int) sum;
                }
            default:
                StringBuilder text = new StringBuilder();
                IntStream.range(0, 300).forEach(value -> text.append(value).append(','));
                return text.toString().split(",").length;
        }
    }

    private static void run(int seed, long end) {
        Random random = new Random(seed);
        while (System.currentTimeMillis() < end) {
            descend(3 + random.nextInt(30), random);
            if (random.nextInt(50) == 0) {
                LockSupport.parkNanos(1000);
            }
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        long end = System.currentTimeMillis() + Long.parseLong(arguments[0]) * 1000;
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        for (int number = 0; number < THREADS; number++) {
            int seed = number;
            threads.submit(() -> run(seed, end));
        }
        threads.shutdown();
        threads.awaitTermination(1, TimeUnit.HOURS);
    }
}
