// Steps through frames of HotSpot.

static __always_inline int step_hotspot(struct scratch *s, struct interpreter *interpreter) {
    return 1;
}
