// Steps through frames of V8.

static __always_inline int step_v8(struct scratch *s, struct interpreter *interpreter) {
    return 1;
}
