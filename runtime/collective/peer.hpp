// The other ranks as one rank sees them: the control connection to each, which says whether it is
// still there, and the pipe for the bytes. The thread that is in a collective uses it.
#pragma once

#include "runtime/collective/pipe.hpp"
#include "runtime/collective/rank_protocol.hpp"
#include "runtime/net/socket.hpp"

#include <memory>
#include <optional>
#include <string>

namespace troupe::collective {

class Peer {
 public:
  Peer(int rank, net::OwnedFd control, std::unique_ptr<Pipe> pipe)
      : rank_(rank), control_(std::move(control)), pipe_(std::move(pipe)) {}

  int rank() const { return rank_; }
  int control() const { return control_.get(); }
  Pipe& pipe() { return *pipe_; }
  std::uint64_t calls = 0;  // in which both took part so far

  // Reads what came on the control connection.
  void hear();
  // The peer left without a word: its process is gone.
  bool vanished() const { return closed_ && !done_ && !failure_; }
  bool gone() const { return closed_; }
  // Why the peer gave up, if it did.
  const std::optional<core::Error>& failure() const { return failure_; }

  // The peer's end of the device link that is being made does not come up.
  bool without_link() const { return without_link_; }
  void say_no_link();

  // Tells the peer that this rank leaves: in order without an error, or because of it. Neither
  // blocks nor fails.
  void say_goodbye(const core::Error* error);
  // The bytes can no longer go: the peer shall see that on the control connection, too.
  void break_off();

 private:
  void understand();

  const int rank_;
  net::OwnedFd control_;  // before the pipe, which writes to it
  std::unique_ptr<Pipe> pipe_;
  std::string heard_;  // bytes of an unfinished farewell
  bool closed_ = false, done_ = false, without_link_ = false;
  std::optional<core::Error> failure_;
};

}  // namespace troupe::collective
