// The generation of a run: how many heads have worked on it, one after the other. The number is
// kept in RUN/generation.json and grows with each head. A head that finds a newer one there has
// been superseded and must not write any more; this also holds where the run folder is shared by
// hosts whose file locks do not know each other.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <filesystem>

namespace troupe::store {

class Generation {
 public:
  // Takes the next generation of the run in `folder` for this process, or finds the one that it has
  // taken before. On disk when it returns. Errors: the disk's.
  static core::Result<Generation> take(const std::filesystem::path& folder);

  std::uint64_t run_id() const noexcept { return run_id_; }  // the same for all generations
  std::uint64_t number() const noexcept { return number_; }  // from 1 on

  // Error kClosed: another head has taken the run over. A file that cannot be read is no error.
  core::Result<void> check() const;

 private:
  std::filesystem::path file_;
  std::uint64_t run_id_ = 0;
  std::uint64_t number_ = 0;
};

// Makes what is sampled from now on another run's: roles of earlier generations do not belong to
// it. Takes effect with the next `take`.
core::Result<void> forget_run(const std::filesystem::path& folder);

}  // namespace troupe::store
