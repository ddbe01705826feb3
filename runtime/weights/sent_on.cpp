// How a WeightServer sends receivers on to relays, and what they report from there.
#include "runtime/weights/limits.hpp"
#include "runtime/weights/weight_server.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace troupe::weights {
namespace {

core::TimePoint this_moment() {
  return std::chrono::steady_clock::now();
}

}  // namespace

// Tells the reader of a relay, if there is one for it; it then holds no snapshot. A receiver whose
// relay took an older version back counts as cut, and is served here.
bool WeightServer::is_sent_on(Reader& reader, const Snapshot& newest) {
  const Hello& hello = reader.hello;
  if (work_.relay || hello.relays == 0) return false;
  if (hello.fault == RelayFault::kLost && hello.begun != 0 && hello.begun < newest.version()) {
    cut_receivers_.add(reader.number());
  }
  note_streams();
  RelayBook::Ask ask;
  ask.place = hello.place;
  ask.host = hello.host;
  ask.turn = reader.turn;
  ask.content = {image_type(hello.image), newest.version(), newest.shape().buckets};
  if (hello.begun == newest.version()) ask.buckets = std::min(hello.buckets, ask.content.all);
  ask.avoid = hello.avoid;
  ask.fault = hello.fault;
  ask.direct =
      cut_receivers_.contains(reader.number()) || count(State::kSentOn) >= limits::kWeightIdle_max;
  const std::optional<RelayPlace> place = book_.choose(ask, this_moment());
  if (!place) return false;
  struct {
    Answer answer;
    RelayPlace place;
  } message;
  message.answer.status = AnswerStatus::kAtRelay;
  message.answer.version = newest.version();
  message.place = *place;
  end_leases(reader);
  reader.state = State::kSentOn;
  reader.until = core::TimePoint::max();
  reader.report_bytes = 0;
  ++sent_on_;
  // If the connection has ended, the next read says so.
  (void)!::send(reader.socket.get(), &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
  return true;
}

// Notes how far the receivers are that this server feeds.
void WeightServer::note_streams() {
  for (const Reader& reader : readers_) {
    if (reader.state != State::kStream) continue;
    const SnapshotShape& shape = reader.lease->shape();
    int unsent = 0;
    if (::ioctl(reader.socket.get(), SIOCOUTQ, &unsent) != 0) continue;
    const std::uint64_t taken = reader.sent - static_cast<std::uint64_t>(unsent);
    if (taken <= shape.data_offset()) continue;
    // With several sources as many as if all went at this pace.
    const std::uint64_t more =
        (taken - shape.data_offset()) / shape.bucket_bytes * reader.lease->share().of;
    const auto buckets = reader.first_bucket + static_cast<std::uint32_t>(more);
    book_.progress(reader.number(), std::min(buckets, shape.buckets), this_moment());
  }
}

bool WeightServer::read_reports(Reader& reader) {
  while (reader.state == State::kSentOn) {
    char* const into = reinterpret_cast<char*>(&reader.report) + reader.report_bytes;
    const ssize_t n =
        ::recv(reader.socket.get(), into, sizeof(Report) - reader.report_bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) {
      ++cut_;
      return false;
    }
    reader.report_bytes += static_cast<std::size_t>(n);
    if (reader.report_bytes < sizeof(Report)) continue;
    reader.report_bytes = 0;
    if (!take_report(reader)) return false;
  }
  return true;
}

bool WeightServer::take_report(Reader& reader) {
  switch (reader.report.kind) {
    case Report::Kind::kProgress:
      book_.progress(reader.number(), reader.report.buckets, this_moment());
      return true;
    case Report::Kind::kDone:
      ++served_;
      cut_receivers_.forget(reader.number());
      return becomes_idle(reader);
    case Report::Kind::kAgain:
      reader.state = State::kIdle;
      reader.until = this_moment() + limits::kWeightHello;
      reader.hello_bytes = 0;
      return true;
  }
  ++refused_;
  return false;
}

}  // namespace troupe::weights
