// The version of the weights that sampled each token of a sample, stored as runs of equal versions,
// because thousands of tokens come from a handful of versions. Reads as a sequence with one version
// per token. Value type.
#pragma once

#include "runtime/core/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace troupe::experience {

class VersionRuns {
 public:
  struct Run {
    core::Version version = 0;
    std::uint64_t count = 0;  // number of tokens, at least 1
    friend bool operator==(const Run&, const Run&) = default;
  };

  VersionRuns() = default;
  VersionRuns(std::initializer_list<core::Version> versions);  // one per token
  explicit VersionRuns(std::span<const core::Version> versions);
  static VersionRuns all(core::Version version, std::uint64_t tokens);

  void add(core::Version version, std::uint64_t count = 1);

  std::span<const Run> runs() const { return runs_; }
  std::size_t size() const { return size_; }  // tokens
  bool empty() const { return size_ == 0; }
  // Versions of the first and of the last token. These and the two below need at least one token.
  core::Version front() const { return runs_.front().version; }
  core::Version back() const { return runs_.back().version; }
  core::Version oldest() const;
  core::Version newest() const;

  // One step per token.
  class const_iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = core::Version;
    using difference_type = std::ptrdiff_t;
    using pointer = const core::Version*;
    using reference = const core::Version&;

    const_iterator() = default;
    reference operator*() const { return run_->version; }
    const_iterator& operator++() {
      if (++token_ == run_->count) {
        ++run_;
        token_ = 0;
      }
      return *this;
    }
    const_iterator operator++(int) { return std::exchange(*this, std::next(*this)); }
    friend bool operator==(const const_iterator&, const const_iterator&) = default;

   private:
    friend class VersionRuns;
    explicit const_iterator(const Run* run) : run_(run) {}
    const Run* run_ = nullptr;
    std::uint64_t token_ = 0;  // within the run
  };
  const_iterator begin() const { return const_iterator(runs_.data()); }
  const_iterator end() const { return const_iterator(runs_.data() + runs_.size()); }

  friend bool operator==(const VersionRuns&, const VersionRuns&) = default;

 private:
  std::vector<Run> runs_;  // neighbouring runs differ in version
  std::size_t size_ = 0;
};

}  // namespace troupe::experience
