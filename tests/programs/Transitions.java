// Calls between interpreted and compiled methods and those that are written in C++, for the seconds that are given. The methods of
// `Compiled` are to be compiled, the others of this file to be interpreted. Each method is called by one other.

public class Transitions {
    static volatile int result;
    static final byte[] BYTES = new byte[40];
    static final Object OBJECT = new Object();
    static final String TEXT = "text";

    static int none() { return 1; }
    static int one(int a) { return a; }
    static int two(int a, Object b) { return a; }
    // Arguments beyond the registers are on the stack.
    static int many(int a, int b, int c, int d, int e, int f, int g, int h, long i, double j, Object k) { return a; }
    int itself() { return 1; }

    static class Compiled {
        static int callNone(int n) { int sum = 0; for (int i = 0; i < 20; i++) sum += none(); return sum; }
        static int callOne(int n) { return one(n) + 1; }
        static int callTwo(int n) { int sum = 0; for (int i = 0; i < 20; i++) sum += two(i, OBJECT); return sum; }
        static int callMany(int n) { return many(n, n, n, n, n, n, n, n, 5, 2, OBJECT) + 1; }
        static int callItself(Transitions shape) { return shape.itself() + 1; }
    }

    static void runClone() { for (int i = 0; i < 30; i++) result += BYTES.clone().length; }
    static void runIntern() { for (int i = 0; i < 30; i++) result += TEXT.intern().length(); }
    static void runThread() { for (int i = 0; i < 30; i++) result += Thread.currentThread() == OBJECT ? 1 : 0; }
    static void runClass() { for (int i = 0; i < 30; i++) result += OBJECT.getClass() == String.class ? 1 : 0; }
    // An instruction more or less on the interpreter's stack moves the stack pointer.
    static void runNone() { for (int i = 0; i < 3; i++) result = 1 + Compiled.callNone(i); }
    static void runOne() { for (int i = 0; i < 30; i++) result = Compiled.callOne(i) + (1 + Compiled.callOne(i)); }
    static void runTwo() { for (int i = 0; i < 3; i++) result = Compiled.callTwo(i) + 1; }
    static void runMany() { for (int i = 0; i < 30; i++) result = Compiled.callMany(i) + (1 + Compiled.callMany(i)); }
    static void runItself(Transitions shape) { for (int i = 0; i < 30; i++) result = Compiled.callItself(shape); }

    public static void main(String[] arguments) {
        long end = System.nanoTime() + (long) (Double.parseDouble(arguments[0]) * 1e9);
        Transitions shape = new Transitions();
        while (System.nanoTime() < end) {
            runClone();
            runIntern();
            runThread();
            runClass();
            runNone();
            runOne();
            runTwo();
            runMany();
            runItself(shape);
        }
    }
}
