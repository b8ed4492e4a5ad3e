import java.io.InputStream;
import java.lang.reflect.Method;

/**
 * Loads and unloads classes for the seconds that are given: in each, `outerN` alone calls `innerN`, which alone calls `leafN`.
 * They are compiled, with the calls inlined. Each class is the same one with another number in its names.
 */
class Churn {
    static class Template {
        static int leaf_00000(int x, int i) {
            int s = x;
            for (int k = 0; k < 6; k++) s = (s * 31 + i + k) & 0xffffff;
            return s;
        }

        static int inner_00000(int x, int i) {
            return leaf_00000(x, i) ^ leaf_00000(x + 1, i);
        }

        public static int outer_00000(int n) {
            int s = 0;
            for (int i = 0; i < n; i++) s = inner_00000(s, i);
            return s;
        }
    }

    static class Loader extends ClassLoader {
        Class<?> define(byte[] bytes) {
            return defineClass(null, bytes, 0, bytes.length);
        }
    }

    /** Puts a number in the place of each `_00000`. */
    static byte[] renumber(byte[] template, int number) {
        byte[] from = "_00000".getBytes(), to = String.format("_%05d", number).getBytes(), bytes = template.clone();
        for (int i = 0; i + from.length <= bytes.length; i++) {
            int k = 0;
            while (k < from.length && bytes[i + k] == from[k]) k++;
            if (k == from.length) System.arraycopy(to, 0, bytes, i, to.length);
        }
        return bytes;
    }

    public static void main(String[] words) throws Exception {
        byte[] template;
        try (InputStream in = Churn.class.getClassLoader().getResourceAsStream("Churn$Template.class")) {
            template = in.readAllBytes();
        }
        long last = System.nanoTime() + (long) (1e9 * Double.parseDouble(words[0]));
        Method[] live = new Method[40];
        for (int number = 1; System.nanoTime() < last; number++) {
            Class<?> made = new Loader().define(renumber(template, number));
            Method outer = made.getMethod(String.format("outer_%05d", number), int.class);
            outer.setAccessible(true);
            live[number % live.length] = outer;
            for (int i = 0; i < 100; i++) for (Method method : live) if (method != null) method.invoke(null, 500);
            if (number % 100 == 0) System.gc();
        }
    }
}
