#include "runtime/store/io_error.hpp"

#include <cerrno>
#include <string>
#include <system_error>

namespace troupe::store {
namespace {

struct Advice {
  ErrorCode code;
  std::string_view text;
};

Advice advice_for(int error_number) {
  switch (error_number) {
    case ENOSPC:
      return {ErrorCode::kNoRoom,
              "free space or inodes on that file system (old checkpoints and "
              "runs first) or choose another output folder"};
    case EDQUOT:
      return {ErrorCode::kNoRoom,
              "the user's disk quota is used up: free space under it or "
              "choose another output folder"};
    case EFBIG:
      return {ErrorCode::kResources,
              "the file system or `ulimit -f` does not allow files this "
              "large: choose another output folder"};
    case EROFS:
    case EACCES:
    case EPERM:
      return {ErrorCode::kResources, "check the permissions or choose another folder"};
    case EMFILE:
    case ENFILE:
      return {ErrorCode::kNoRoom,
              "close other programs' files, or raise the limit on open files (`ulimit -n`)"};
    case EAGAIN:
    case ENOMEM:
      return {ErrorCode::kNoRoom, "the system has no memory or process left for it now"};
    case ENOENT:
    case ENOTDIR:
      return {ErrorCode::kNotFound, ""};
    default:
      return {ErrorCode::kResources, ""};
  }
}

}  // namespace

core::Failure io_failure(std::string_view what,
                         const std::filesystem::path& path,
                         int error_number) {
  const Advice advice = advice_for(error_number);
  return core::fail(advice.code,
                    "cannot " + std::string(what) + " " + path.string() + ": " +
                        std::generic_category().message(error_number),
                    advice.text);
}

}  // namespace troupe::store
