// Runs Java methods of known call stacks for the seconds that are given.
//
// Every method that works calls `burnKind`, whose only callers are those in the test.

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

public class Functions {
    static volatile int result;

    static int compute(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum = (sum * 31 + i) & 0xffffff;
        }
        return sum;
    }

    static void burnDeep(int n) { result = compute(n); }
    static void burnOdd(int n) { result = compute(n); }
    static void burnLambda(int n) { result = compute(n); }
    static void burnSquare(int n) { result = compute(n); }
    static void burnCircle(int n) { result = compute(n); }
    static void burnHandler(int n) { result = compute(n); }
    static void burnCompare(int n) { result = compute(n); }
    static void burnThread(int n) { result = compute(n); }
    static void burnInlined(int n) { result = compute(n); }

    static void deep(int depth) {
        if (depth > 0) {
            deep(depth - 1);
        } else {
            burnDeep(20_000);
        }
    }

    static void odd(int n) {
        if (n > 0) {
            even(n - 1);
        } else {
            burnOdd(10_000);
        }
    }

    static void even(int n) { odd(n - 1); }

    static void lambdas(List<Integer> numbers) { numbers.forEach(number -> burnLambda(2_000)); }

    interface Shape {
        void draw();
    }

    static class Square implements Shape {
        public void draw() { burnSquare(2_000); }
    }

    static class Circle implements Shape {
        public void draw() { burnCircle(2_000); }
    }

    static void shapes(Shape[] shapes) {
        for (Shape shape : shapes) {
            shape.draw();
        }
    }

    static void handler() {
        try {
            fail(5);
        } catch (IllegalStateException e) {
            burnHandler(10_000);
        }
    }

    static void fail(int depth) {
        if (depth == 0) {
            throw new IllegalStateException();
        }
        fail(depth - 1);
    }

    static int compare(Integer a, Integer b) {
        burnCompare(300);
        return b - a;
    }

    static void sortNumbers() {
        Integer[] numbers = new Integer[20];
        for (int i = 0; i < numbers.length; i++) {
            numbers[i] = i * 7919 % 20;
        }
        Arrays.sort(numbers, Functions::compare);
    }

    static final String TEXT = "0123456789".repeat(1_000);
    static final String[] OTHER_TEXTS = {TEXT + "a", TEXT + "b"};

    // The compiler's code for this pushes a word meanwhile.
    static void compareTexts() {
        int sum = 0;
        for (int i = 0; i < 100; i++) {
            sum += TEXT.compareTo(OTHER_TEXTS[i & 1]);
        }
        result = sum;
    }

    static void inner(int n) { burnInlined(n); }
    static void middle(int n) { inner(n); }
    static void outer(int n) { middle(n); }

    static synchronized void locked() { burnThread(2_000); }

    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + (long) (Double.parseDouble(arguments[0]) * 1e9);
        Thread thread = new Thread(() -> {
            while (System.nanoTime() < end) {
                locked();
            }
        });
        thread.start();
        List<Integer> numbers = new ArrayList<>(Arrays.asList(1, 2, 3));
        Shape[] shapes = {new Square(), new Circle(), new Square(), new Circle()};
        while (System.nanoTime() < end) {
            deep(300);
            odd(101);
            lambdas(numbers);
            shapes(shapes);
            handler();
            sortNumbers();
            outer(10_000);
            compareTexts();
        }
        thread.join();
    }
}
