// One attempt to get a version from the relay that the publisher names: its stream, or its memory
// if it is of this host. While nothing comes, and now and then while it works, the publisher is
// asked whether to stay there. Used on the subscriber's fetching thread.
#pragma once

#include "runtime/weights/publisher_link.hpp"

#include <optional>
#include <string>

namespace troupe::weights {

class RelayFetch {
 public:
  // All outlive the object.
  RelayFetch(const StreamContext& context, PublisherLink& publisher, PartialSnapshot& into);

  // Errors: kDeadline (silent, and the publisher is gone), kPeerLost (it has ended, or the
  // publisher has sent us elsewhere), kData (wrong bytes), kClosed (given up here), those of
  // connecting.
  core::Result<void> take();
  // That error came because the publisher has given another direction.
  bool is_redirected() const { return redirected_; }
  // What a relay of this host has lent; none: it has come bucket by bucket.
  std::optional<ArrivedImage>& lent() { return lent_; }

 private:
  core::Result<net::OwnedFd> connect() const;
  core::Result<void> take_stream();
  core::Result<void> take_memory();
  core::Result<void> say_hello(Wants wants);
  core::Result<void> read(void* into, std::size_t size, const std::string& what);
  core::Result<void> wait(const std::string& what);
  core::Result<void> review(RelayFault fault);

  const StreamContext& context_;
  PublisherLink& publisher_;
  PartialSnapshot& into_;
  const RelayPlace relay_;
  const core::Version version_;
  net::OwnedFd socket_;
  std::optional<ArrivedImage> lent_;
  bool redirected_ = false;
  core::TimePoint reviewed_;
};

}  // namespace troupe::weights
