#include "tests/sim/relays/receiver.hpp"

#include "runtime/weights/limits.hpp"

#include <algorithm>

namespace troupe::sim {

using namespace std::chrono_literals;
using weights::RelayFault;
using weights::Report;
namespace limits = weights::limits;

namespace {
constexpr core::Duration kPatience = 10s;  // of a fetch without a byte
constexpr core::Duration kLook = 50ms;
}  // namespace

weights::RelayPlace Receiver::place() const {
  weights::RelayPlace place;
  place.number = number_;
  place.socket = "@relay";
  if (reachable_) place.address = "relay:1";
  return place;
}

// ---- its process
// ---------------------------------------------------------------------------------

void Receiver::begin() {
  number_ = around_.new_number();
  alive_ = true;
  look();
}

void Receiver::kill() {
  alive_ = frozen_ = waits_ = false;
  abandon();
  around_.disconnect(*this);
  fetch_.reset();
  whole_.reset();
  kept_.clear();
  held_.clear();
  set_aside_.clear();
  children_.clear();
  pause_ = 0ms;
  relay_life_ = 0;
}

void Receiver::freeze(bool frozen) {
  frozen_ = frozen && alive_;
  while (!frozen_ && !held_.empty()) {
    const auto what = std::move(held_.front());
    held_.pop_front();
    what();
  }
}

void Receiver::reached(std::function<void()> what) {
  if (!alive_) return;
  if (frozen_) return held_.push_back(std::move(what));
  what();
}

// ---- fetches
// -------------------------------------------------------------------------------------

void Receiver::told(std::uint64_t life, core::Version version) {
  life_ = life;
  version_ = version;
  reached([this] { look(); });
}

// Begins to fetch what it has been told of and has not.
void Receiver::look() {
  if (!alive_ || fetch_ || waits_ || life_ == 0) return;
  const bool has = whole_ && whole_->life == life_ && whole_->version >= version_;
  if (!has) fetch_later(1ms);
}

void Receiver::fetch_later(core::Duration pause) {
  waits_ = true;
  around_.time.schedule(around_.time.now() + pause, [this, number = number_] {
    if (number != number_) return;
    reached([this] { fetch(); });
  });
}

void Receiver::fetch() {
  waits_ = false;
  if (relay_life_ != life_) {  // nothing of another publisher is passed on
    relay_life_ = life_;
    set_aside_.clear();
    if (whole_) whole_->abandoned = true;
    if (whole_) around_.grown(whole_);
    children_.clear();
  }
  fetch_.emplace();
  fetch_->life = life_;
  fetch_->at_least = version_;
  fetch_->asked = fetch_->heard = around_.time.now();
  ++fetches_;
  if (!around_.connect(*this, life_)) return give_up();
  ask(RelayFault::kNone);
  tick(fetches_);
}

// Looks for what did not come: an answer of the publisher, bytes.
void Receiver::tick(std::uint64_t fetch) {
  if (!alive_ || !fetch_ || fetches_ != fetch) return;
  const core::TimePoint now = around_.time.now();
  around_.time.schedule(now + kLook, [this, fetch, number = number_] {
    if (number == number_) reached([this, fetch] { tick(fetch); });
  });
  if (fetch_->asking) {
    if (now - fetch_->asked >= kPatience) give_up();
    return;
  }
  if (fetch_->stream && around_.flows(*fetch_->stream)) fetch_->heard = now;
  const core::Duration silent = now - fetch_->heard;
  if (fetch_->parent == 0 || fetch_->publisher_lost) {
    if (silent >= kPatience) give_up();
  } else if (now - fetch_->reviewed >= limits::kRelaySilent && silent >= limits::kRelaySilent) {
    ask(RelayFault::kSilent);
  }
}

void Receiver::ask(RelayFault fault) {
  if (fetch_->publisher_lost) return give_up();
  if (fault != RelayFault::kNone) report(Report::Kind::kAgain);
  fetch_->asking = true;
  fetch_->asked = fetch_->reviewed = around_.time.now();
  fetch_->fault = fault;
  RelayAsk ask;
  ask.life = fetch_->life;
  ask.at_least = fetch_->at_least;
  ask.begun = begun_ ? begun_->version : 0;
  ask.buckets = begun_ ? begun_->ready() : 0;
  ask.avoid = fault == RelayFault::kNone ? 0 : fetch_->parent;
  ask.fault = fault;
  around_.ask_publisher(*this, ask);
}

void Receiver::directed(const RelayDirection& direction) {
  reached([this, direction] {
    if (!fetch_ || !fetch_->asking) return;
    if (direction.version == 0) return give_up();
    fetch_->asking = false;
    const bool review = fetch_->fault == RelayFault::kSlow || fetch_->fault == RelayFault::kSilent;
    const std::uint32_t relay = direction.place ? direction.place->number : 0;
    auto later = std::exchange(fetch_->later, {});
    if (review && relay == fetch_->parent) {  // it stays
      for (const auto& what : later)
        if (fetch_) what();
      return;
    }
    leave_stream();
    fetch_->parent = relay;
    fetch_->heard = around_.time.now();
    if (relay == 0) return;  // its stream follows
    const bool aside = std::find(set_aside_.begin(), set_aside_.end(), relay) != set_aside_.end();
    around_.truth.expect(!aside, "a receiver is sent to a relay that gave it wrong bytes");
    go_to(relay, !direction.place->socket.empty());
  });
}

void Receiver::go_to(std::uint32_t relay, bool memory) {
  RelayAsk ask;
  ask.life = fetch_->life;
  ask.at_least = fetch_->at_least;
  ask.begun = begun_ ? begun_->version : 0;
  ask.buckets = begun_ ? begun_->ready() : 0;
  fetch_->reviewed = fetch_->reported = around_.time.now();
  around_.ask_relay(*this, relay, ask, memory);
}

void Receiver::publisher_gone() {
  reached([this] {
    if (!fetch_) return;
    fetch_->publisher_lost = true;
    if (fetch_->parent == 0 || fetch_->asking) give_up();
  });
}

void Receiver::refused(std::uint32_t relay) {
  reached([this, relay] {
    if (fetch_ && fetch_->parent == relay && !fetch_->asking) ask(RelayFault::kLost);
  });
}

void Receiver::begins(const StreamPtr& stream) {
  reached([this, stream] {
    const bool ours = fetch_ && !fetch_->asking && fetch_->parent == stream->from;
    if (stream->over) return;
    if (!ours || fetch_->stream) return around_.close(*stream);
    fetch_->stream = stream;
    fetch_->heard = around_.time.now();
    const bool goes_on = begun_ && begun_->is(stream->image->life, stream->image->version);
    if (goes_on) {
      around_.truth.expect(stream->next == begun_->ready(), "a stream begins at another bucket");
      return;
    }
    abandon();
    begun_ = std::make_shared<Image>();
    begun_->life = stream->image->life;
    begun_->version = stream->image->version;
    begun_->all = stream->image->all;
    keep(begun_);
    serve_children();
  });
}

void Receiver::bucket(const StreamPtr& stream, std::uint64_t bytes) {
  reached([this, stream, bytes] {
    if (!fetch_ || fetch_->stream != stream) return;
    if (!fetch_->asking) return take_bucket(bytes);
    fetch_->later.push_back([this, stream, bytes] { bucket(stream, bytes); });
  });
}

void Receiver::take_bucket(std::uint64_t bytes) {
  const core::TimePoint now = around_.time.now();
  fetch_->heard = now;
  if (bytes != true_bucket(begun_->life, begun_->version, begun_->ready())) {
    around_.truth.expect(fetch_->parent != 0, "the publisher gives wrong bytes");
    around_.truth.census.count("relay", "wrong bytes are seen");
    set_aside_.push_back(fetch_->parent);
    return ask(RelayFault::kWrong);
  }
  begun_->buckets.push_back(bytes);
  around_.grown(begun_);
  serve_children();
  if (begun_->complete()) return finish(begun_);
  if (fetch_->parent == 0) return;
  if (now - fetch_->reported >= limits::kRelayReport) report(Report::Kind::kProgress);
  if (now - fetch_->reviewed >= limits::kRelayReview && !fetch_->publisher_lost)
    ask(RelayFault::kSlow);
}

void Receiver::ended(const StreamPtr& stream) {
  reached([this, stream] {
    if (!fetch_ || fetch_->stream != stream) return;
    if (fetch_->asking) return fetch_->later.push_back([this, stream] { ended(stream); });
    if (fetch_->parent == 0) return give_up();
    ask(RelayFault::kLost);
  });
}

void Receiver::lent(std::uint32_t relay, const ImagePtr& image) {
  reached([this, relay, image] {
    if (!fetch_ || fetch_->parent != relay) return;
    if (fetch_->asking) return fetch_->later.push_back([=, this] { lent(relay, image); });
    abandon();
    finish(image);
  });
}

void Receiver::report(Report::Kind kind) {
  fetch_->reported = around_.time.now();
  around_.report(*this, {kind, begun_ ? begun_->ready() : 0});
}

void Receiver::finish(ImagePtr image) {
  around_.truth.expect(image->is_true(), "a receiver keeps a mix");
  around_.truth.expect(!whole_ || whole_->life != image->life || whole_->version < image->version,
                       "a receiver goes back to an older version");
  around_.truth.census.count("relay", fetch_->parent == 0 ? "whole from the publisher"
                                      : fetch_->stream    ? "whole from a relay"
                                                          : "whole in a relay's memory");
  report(Report::Kind::kDone);
  whole_ = std::move(image);
  if (begun_ != whole_) abandon();
  begun_.reset();
  fetch_.reset();
  pause_ = 0ms;
  serve_children();
  around_.progressed();
  look();
}

// The fetch has failed; another one begins after a while.
void Receiver::give_up() {
  around_.truth.census.count("relay", "a fetch fails");
  leave_stream();
  fetch_.reset();
  abandon();
  around_.disconnect(*this);
  pause_ = std::clamp<core::Duration>(2 * pause_, 100ms, 2s);
  fetch_later(pause_);
}

void Receiver::leave_stream() {
  if (fetch_->stream) around_.close(*fetch_->stream);
  fetch_->stream.reset();
}

void Receiver::abandon() {
  if (!begun_) return;
  begun_->abandoned = true;
  around_.grown(begun_);
  begun_.reset();
}

// It has room for as many as the publisher: one that it passes on too slowly is taken back.
void Receiver::keep(ImagePtr image) {
  std::erase_if(kept_, [](const ImagePtr& one) { return one->abandoned; });
  kept_.push_back(std::move(image));
  if (kept_.size() <= limits::kWeightSnapshots_max) return;
  const ImagePtr oldest = std::move(kept_.front());
  kept_.pop_front();
  oldest->abandoned = true;
  around_.grown(oldest);
}

// ---- a relay
// -------------------------------------------------------------------------------------

void Receiver::asked(std::uint32_t by, const RelayAsk& ask, bool memory) {
  reached([this, child = Child{by, ask, memory}] {
    std::erase_if(children_, [&](const Child& other) { return other.number == child.number; });
    if (!serve(child)) children_.push_back(child);
  });
}

void Receiver::serve_children() {
  for (std::size_t i = children_.size(); i-- > 0;)
    if (serve(children_[i])) children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
}

// Gives the newest snapshot that is here, as far as it has come; memory of its host only whole.
bool Receiver::serve(const Child& child) {
  const ImagePtr& image = begun_ ? begun_ : whole_;
  if (!image || image->life != child.ask.life || image->version < child.ask.at_least) return false;
  if (child.memory && !image->complete()) return false;
  if (child.memory) {
    around_.lend(number_, child.number, image);
    return true;
  }
  const bool goes_on = child.ask.begun == image->version && child.ask.buckets <= image->all;
  around_.open_stream(number_, child.number, image, goes_on ? child.ask.buckets : 0);
  return true;
}

}  // namespace troupe::sim
