// libsndfile 1.2.0 does not free libvorbis's state when an Ogg file ends within its headers.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:vorbis_info_init\n"; }
