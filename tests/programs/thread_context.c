/* The thread-local variable through which a thread publishes its context, as OpenTelemetry names it (OTEP 4947). */
__thread void *otel_thread_ctx_v1;
/* Storage that is too large for what the dynamic linker keeps for libraries that are loaded late. */
#ifdef FILL
__thread char filler[1 << 16];
#endif
void **thread_context(void) {
#ifdef FILL
    ((volatile char *) filler)[0]++;
#endif
    return &otel_thread_ctx_v1;
}
