// libcuda.so.1 of a driver that has no GPU: it says that it has the CUDA version that
// TROUPE_TEST_DRIVER names (12000 is 12.0) and gives what that version has. No CUDA header is
// needed.
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kNoDevice = 100, kNotFound = 500;  // CUresult

int version() {
  const char* const text = std::getenv("TROUPE_TEST_DRIVER");
  return text != nullptr ? std::atoi(text) : 0;
}

int not_here() {
  return kNotFound;
}

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  return kNoDevice;
}

int cuDriverGetVersion(int* to) {
  *to = version();
  return 0;
}

// `cuda`: the version that the wanted form of the function came with.
int cuGetProcAddress_v2(const char* name, void** to, int cuda, unsigned long long, int* status) {
  const bool known = cuda <= version();
  *to = !known                                         ? nullptr
        : std::strcmp(name, "cuInit") == 0             ? address(&cuInit)
        : std::strcmp(name, "cuDriverGetVersion") == 0 ? address(&cuDriverGetVersion)
        : std::strcmp(name, "cuGetProcAddress") == 0   ? address(&cuGetProcAddress_v2)
                                                       : address(&not_here);
  if (status != nullptr) *status = known ? 0 : 2;  // found; the version is not sufficient
  return known ? 0 : kNotFound;
}

int cuGetProcAddress(const char* name, void** to, int cuda, unsigned long long flags) {
  return cuGetProcAddress_v2(name, to, cuda, flags, nullptr);
}
}
