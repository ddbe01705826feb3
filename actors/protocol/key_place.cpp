#include "actors/protocol/key_place.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>

namespace troupe::actors {
namespace {

struct KeyName {
  const std::string& what;
  const std::string& flag;
};

core::Result<std::string> checked_key(std::string key, const std::string& from, KeyName name) {
  const bool plain =
      std::ranges::all_of(key, [](unsigned char c) { return c < 0x7f && std::isgraph(c) != 0; });
  if (!key.empty() && plain) return key;
  return core::fail(ErrorCode::kConfig,
                    from + (key.empty() ? " is empty" : " holds blanks or letters of no key"),
                    "put " + name.what + " there (" + name.flag + ")");
}

}  // namespace

core::Result<std::string> read_key(const std::string& place,
                                   const std::string& what,
                                   const std::string& flag) {
  const KeyName key{what, flag};
  if (place.empty()) return std::string();
  if (place.starts_with("env:")) {
    const std::string name = place.substr(4);
    const char* const value = std::getenv(name.c_str());
    if (value != nullptr) return checked_key(value, "the variable " + name, key);
    return core::fail(ErrorCode::kConfig, "there is no variable " + name + " in the environment",
                      "set it to " + what + ", or change " + flag);
  }
  if (!place.starts_with("file:")) {
    return core::fail(ErrorCode::kConfig,
                      flag + " says where the key is, as env:NAME or file:PATH");
  }
  const std::string file = place.substr(5);
  std::ifstream in(file);
  std::string line;
  if (!in || !std::getline(in, line)) {
    return core::fail(ErrorCode::kConfig, what + " cannot be read from " + file, "change " + flag);
  }
  struct stat facts {};
  if (::stat(file.c_str(), &facts) == 0 && (facts.st_mode & 077) != 0) {
    return core::fail(ErrorCode::kConfig,
                      what + " in " + file + " can be read by users other than its owner",
                      "chmod 600 " + file);
  }
  if (line.ends_with('\r')) line.pop_back();
  return checked_key(std::move(line), file, key);
}

}  // namespace troupe::actors
