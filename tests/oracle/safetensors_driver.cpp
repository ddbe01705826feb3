// What safetensors_test.py drives: opens each file named on the command line and prints a line for
// it, "accepted" or the reason why not.
#include "runtime/store/safetensors.hpp"

#include <iostream>

int main(int count, char** words) {
  for (int i = 1; i < count; ++i) {
    const auto file = troupe::store::SafetensorsFile::open(words[i]);
    std::cout << (file ? "accepted" : file.error().message) << '\n';
  }
}
