// Defaults of the sanitizers for every test program.

extern "C" {

// A reload holds the locks of all 64 shards at once, in ascending order; the thread sanitizer's deadlock detector gives
// up beyond 64 locks a thread. The order is checked by a unit test instead.
const char* __tsan_default_options() { return "detect_deadlocks=0:halt_on_error=1:second_deadlock_stack=1"; }

const char* __ubsan_default_options() { return "print_stacktrace=1:halt_on_error=1"; }

}  // extern "C"
