// An error for the user: a code that determines the exit status, and a sentence that says what,
// where, why and which flag or key to change. A value type; safe on any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::core {

enum class ErrorCode {
  kInvalidArgument,  // a caller's value is out of range                        (exit 2)
  kConfig,           // a key, flag or file of the configuration is wrong       (exit 2)
  kResources,        // memory, disk, cores or a device are missing             (exit 3)
  kData,             // a model, dataset, tokenizer or checkpoint is malformed  (exit 4)
  kPeerLost,         // a role or process is gone                               (exit 5)
  kNumeric,          // NaN or infinity where a number is needed                (exit 6)
  kInterrupted,      // the user or a supervisor asked to stop                  (exit 130)
  kDeadline,         // an answer did not come in time                          (exit 5)
  kClosed,           // the channel, role or run has been closed                (exit 5)
  kOverloaded,       // a bounded queue is full                                 (exit 3)
  kUnsupported,      // understood, but not supported here                      (exit 2)
  kNotFound,         // the named thing does not exist                          (exit 2)
  kInternal,         // a bug, or an unexpected failure of a library            (exit 1)
  kNoRoom,           // disk, inodes, open files or threads are used up for now    (exit 3)
};
inline constexpr int kErrorCodes = static_cast<int>(ErrorCode::kNoRoom) + 1;

std::string_view error_name(ErrorCode code) noexcept;

// The process exit status for an error that ends a command: 2, 3, 4, 5, 6, 130, or 1 for a bug.
int exit_status(ErrorCode code) noexcept;

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  // All of it on one line: what is wrong and, behind "; ", what to do.
  std::string message;
  // Where in the message the advice begins; 0: it has none. Whoever makes an error knows: it is
  // never looked for in the text, which may hold words of others.
  std::size_t advice_at = 0;
  // Several mistakes that were found together, each by itself; the message has them all.
  std::vector<Error> mistakes = {};

  // The two parts of the message.
  std::string_view what() const noexcept {
    const std::string_view all = message;
    return advised() ? all.substr(0, advice_at - kBeforeAdvice.size()) : all;
  }
  std::string_view advice() const noexcept {
    return advised() ? std::string_view(message).substr(advice_at) : std::string_view();
  }

  // This error with `where: ` put in front of the message, and of each mistake.
  Error within(std::string_view where) const&;

  // This error with another fact, in front of the advice, or with more advice.
  Error also(std::string_view fact) const&;
  Error advising(std::string_view more) const&;

  static constexpr std::string_view kBeforeAdvice = "; ";

 private:
  bool advised() const noexcept {
    return advice_at >= kBeforeAdvice.size() && advice_at < message.size();
  }
};

// An error whose advice says what to do: which flag or key to change, and to what.
Error advised(ErrorCode code, std::string what, std::string_view advice);

}  // namespace troupe::core
