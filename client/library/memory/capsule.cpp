// The end of a DLPack capsule of Python's that no consumer took. The package has no compiled part
// of its own, and in Python it cannot be written: a capsule is often dropped while an exception is
// set, which a callback in Python would lose. Python's functions are looked up by name, so that the
// library needs none of it.

#include <dlfcn.h>

#include "client/library/batchwright/client.h"

namespace {

constexpr const char* kUnused = "dltensor";  // a capsule's name until it is taken

/// DLPack's, as far as it is read here: a tensor of 48 bytes, then context and deleter.
struct Managed {
  unsigned char tensor[48];
  void* context;
  void (*deleter)(Managed*);
};

template <class Function>
Function python(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

struct Python {
  int (*is_valid)(void*, const char*) = python<int (*)(void*, const char*)>("PyCapsule_IsValid");
  void* (*pointer)(void*,
                   const char*) = python<void* (*)(void*, const char*)>("PyCapsule_GetPointer");
  void (*fetch)(void**, void**, void**) = python<void (*)(void**, void**, void**)>("PyErr_Fetch");
  void (*restore)(void*, void*, void*) = python<void (*)(void*, void*, void*)>("PyErr_Restore");

  bool complete() const {
    return is_valid != nullptr && pointer != nullptr && fetch != nullptr && restore != nullptr;
  }
};

}  // namespace

extern "C" void bw_dlpack_capsule_end(void* capsule) {
  static const Python python;
  if (capsule == nullptr || !python.complete()) return;
  if (python.is_valid(capsule, kUnused) == 0) return;  // its consumer has it
  void* type = nullptr;
  void* value = nullptr;
  void* trace = nullptr;
  python.fetch(&type, &value, &trace);
  auto* managed = static_cast<Managed*>(python.pointer(capsule, kUnused));
  if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
  python.restore(type, value, trace);
}
