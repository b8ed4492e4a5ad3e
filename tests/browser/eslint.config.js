// Lints the scripts of the viewers and of their tests. The type checker knows the global names: the scripts share one
// scope, and eslint reads each file by itself.

import js from "@eslint/js";

export default [
    { ignores: ["**/node_modules/", "**/*.min.js"] },
    js.configs.recommended,
    {
        linterOptions: { reportUnusedDisableDirectives: "error" },
        rules: {
            "no-undef": "off",
            "no-unused-vars": ["error", { vars: "local", argsIgnorePattern: "^_" }],
            "array-callback-return": "error",
            "default-case-last": "error",
            "eqeqeq": "error",
            "max-len": ["error", 120],
            "no-constructor-return": "error",
            "no-implicit-coercion": "error",
            "no-self-compare": "error",
            "no-template-curly-in-string": "error",
            "no-throw-literal": "error",
            "no-unmodified-loop-condition": "error",
            "no-var": "error",
            "object-shorthand": "error",
            "prefer-const": ["error", { destructuring: "all" }],
            "prefer-template": "off",
        },
    },
    {
        files: ["lib/**/*.js", "tests/browser/cases/*.js", "tests/browser/prelude.js"],
        languageOptions: { sourceType: "script" },
    },
];
