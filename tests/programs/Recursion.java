// Calls seven functions in turn, 81 deep, for the seconds that are given. The innermost one calls `work`, which nobody else does.
// Meanwhile threads are stopped, code is compiled and thrown away, and exceptions leave frames.

public class Recursion {
    static final int DEPTH = 81;
    static final String TEXT = "0123456789".repeat(8), OTHER = "0123456789".repeat(7) + "012345678x";
    static volatile int result;

    static int work(int n) {
        int sum = n;
        for (int i = 0; i < 20; i++) {
            sum = sum * 31 + i;
        }
        result = sum;
        return sum & 1;
    }

    static class Static {
        static int f0(int n) { return n == 0 ? work(n) : f1(n - 1) + 1; }
        static int f1(int n) { return n == 0 ? work(n) : f2(n - 1) + (TEXT.compareTo(OTHER) & 1); }
        static synchronized int f2(int n) { return n == 0 ? work(n) : f3(n - 1) + 1; }
        static int f3(int n) { return n == 0 ? work(n) : f4(n - 1) + new int[n].length; }
        static int f4(int n) { return n == 0 ? work(n) : f5(n - 1) + (new Object().hashCode() & 1); }
        static int f5(int n) { return n == 0 ? work(n) : f6(n - 1) + (TEXT.getBytes()[n % 10] & 1); }
        static int f6(int n) { return n == 0 ? work(n) : f0(n - 1) + (int) Math.sin(n); }
    }

    // Arguments beyond the registers are on the stack.
    interface Shape {
        int f(Shape[] all, int n, long a, double b, int c, Object d, long e, int g, int h);
    }

    static class S0 implements Shape {
        public int f(Shape[] all, int n, long a, double b, int c, Object d, long e, int g, int h) {
            return n == 0 ? work(n) : all[1].f(all, n - 1, a + 1, b, c, d, e, h, g) + 1;
        }
    }

    static class S1 implements Shape {
        public int f(Shape[] all, int n, long a, double b, int c, Object d, long e, int g, int h) {
            return n == 0 ? work(n) : all[2].f(all, n - 1, a + 1, b, c, d, e, h, g) + 1;
        }
    }

    static class S2 implements Shape {
        public int f(Shape[] all, int n, long a, double b, int c, Object d, long e, int g, int h) {
            return n == 0 ? work(n) : all[0].f(all, n - 1, a + 1, b, c, d, e, h, g) + 1;
        }
    }

    static class Failure extends RuntimeException {
        Failure() { super(null, null, false, false); }
    }

    static final Failure FAILURE = new Failure();

    static class Throw {
        static int f0(int n) {
            if (n == 0) {
                work(n);
                throw FAILURE;
            }
            return f1(n - 1) + 1;
        }

        static synchronized int f1(int n) { return f2(n - 1) + 1; }

        static int f2(int n) {
            try {
                return f0(n - 1) + 1;
            } finally {
                result++;
            }
        }
    }

    static void callStatic() { result = Static.f0(DEPTH - 1); }

    static void callShapes(Shape[] shapes) { result = shapes[0].f(shapes, DEPTH - 1, 1, 2, 3, TEXT, 5, 6, 7); }

    static void callThrow() {
        try {
            Throw.f0(DEPTH - DEPTH % 3);
        } catch (Failure failure) {
            result++;
        }
    }

    public static void main(String[] arguments) {
        long end = System.nanoTime() + (long) (Double.parseDouble(arguments[0]) * 1e9);
        Thread thread = new Thread(() -> {
            for (int i = 0; System.nanoTime() < end; i++) {
                Thread.getAllStackTraces();
                if (i % 100 == 0) {
                    System.gc();
                }
            }
        });
        thread.setDaemon(true);
        thread.start();
        Shape[] shapes = {new S0(), new S1(), new S2()};
        while (System.nanoTime() < end) {
            callStatic();
            callShapes(shapes);
            callThrow();
        }
    }
}
