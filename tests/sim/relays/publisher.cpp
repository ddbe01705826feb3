#include "tests/sim/relays/publisher.hpp"

#include "runtime/weights/limits.hpp"

#include <algorithm>

namespace troupe::sim {

using weights::RelayBook;
using weights::RelayFault;
using weights::Report;
namespace limits = weights::limits;

void Publisher::begin(core::Version last) {
  ++life_;
  lives_ = true;
  book_.emplace();
  images_.push_back(std::make_shared<Image>());
  images_.back()->version = last;
}

void Publisher::end() {
  lives_ = false;
  images_.clear();
  connections_.clear();
  cut_.clear();
  wrong_.clear();
}

ImagePtr Publisher::publish(std::uint32_t buckets) {
  auto image = std::make_shared<Image>();
  image->life = life_;
  image->version = newest() + 1;
  image->all = buckets;
  for (std::uint32_t i = 0; i < buckets; ++i)
    image->buckets.push_back(true_bucket(life_, image->version, i));
  images_.push_back(std::move(image));
  failed_.clear();
  lost_.clear();
  moved_on_.clear();
  if (images_.size() <= limits::kWeightSnapshots_max) return nullptr;
  ImagePtr oldest = std::move(images_.front());
  images_.pop_front();
  return oldest;
}

void Publisher::gone(std::uint32_t number) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  book_->leave(number, found->second.turn);
  connections_.erase(found);
  lost_.erase(number);  // it may come back, and work
  for (auto& [relay, complaints] : wrong_)
    complaints.erase(number);
}

Publisher::Answer Publisher::ask(const Receiver& from,
                                 const RelayAsk& ask,
                                 const std::vector<StreamPtr>& streams) {
  Answer answer;
  const ImagePtr& image = images_.back();
  if (image->version < ask.at_least) return answer;
  const std::uint32_t number = from.number();
  Connection& connection = connections_.at(number);
  connection.turn = ++turns_;
  const bool moves = moves_on(ask, number);
  if (ask.fault == RelayFault::kLost && ask.begun != 0 && ask.begun < image->version)
    cut_.insert(number);
  for (const StreamPtr& stream : streams)
    if (stream->image == image) book_->progress(stream->to, stream->next, time_.now());
  note_fault(ask, number);
  RelayBook::Ask asked;
  asked.place = from.place();
  asked.host = from.host();
  asked.turn = connection.turn;
  asked.content = {kernels::PanelDtype::kF32, image->version, image->all};
  if (ask.begun == image->version) asked.buckets = ask.buckets;
  asked.avoid = ask.avoid;
  asked.fault = ask.fault;
  asked.direct = cut_.contains(number);
  const auto place = book_->choose(asked, time_.now());
  answer.direction.version = image->version;
  answer.direction.place = place;
  connection.host = from.host();
  connection.version = image->version;
  connection.done = false;
  connection.memory = place && !place->socket.empty();
  connection.free = false;
  if (place) {
    check(from, *place, place->number == ask.avoid);
    connection.parent = place->number;
    return answer;
  }
  connection.parent = 0;
  connection.free = (ask.avoid == 0 || moves) && !asked.direct;
  check_copies();
  if (!asked.direct) ++copies_[{life_, image->version}];
  answer.image = image;
  answer.first = asked.buckets;
  return answer;
}

// It leaves a relay that gave an older version for the newest one, as if nothing had failed.
bool Publisher::moves_on(const RelayAsk& ask, std::uint32_t from) const {
  return ask.fault != RelayFault::kNone && ask.fault != RelayFault::kWrong &&
         connections_.at(from).version != newest();
}

void Publisher::note_fault(const RelayAsk& ask, std::uint32_t from) {
  if (ask.avoid == 0) return;
  truth_.census.count("relay fault", std::to_string(static_cast<int>(ask.fault)));
  if (ask.fault != RelayFault::kSlow) failed_.insert(ask.avoid);
  const auto relay = connections_.find(ask.avoid);
  const bool here = relay != connections_.end() && relay->second.version == newest();
  const bool older = moves_on(ask, from);
  if (here && ask.fault == RelayFault::kLost) (older ? moved_on_ : lost_).insert(ask.avoid);
  if (ask.fault == RelayFault::kWrong) wrong_[ask.avoid].insert(from);
}

// What must hold of a relay that somebody is sent to.
void Publisher::check(const Receiver& from, const weights::RelayPlace& place, bool stays) {
  const std::uint32_t number = from.number(), relay = place.number;
  const std::string who = std::to_string(number) + " is sent to " + std::to_string(relay);
  const auto found = connections_.find(relay);
  truth_.expect(found != connections_.end(), who + ", which is gone");
  if (found == connections_.end()) return;
  truth_.expect(found->second.version == newest(), who + ", which gets another version");
  truth_.expect(!found->second.memory, who + ", which reads the memory of another one");
  truth_.expect(stays || !lost_.contains(relay), who + ", which was lost for somebody");
  truth_.expect(!wrong_[relay].contains(number), who + ", which gave it wrong bytes");
  truth_.expect(wrong_[relay].size() < 2, who + ", which gave two receivers wrong bytes");
  if (moved_on_.contains(relay))
    truth_.census.count("relay", "one that gave up an older version feeds again");
  const bool memory = !place.socket.empty();
  truth_.expect(!memory || found->second.host == from.host(), who + " on another host's socket");
  std::size_t children = memory ? 0 : 1;
  for (const auto& [other, connection] : connections_) {
    const bool fed = connection.parent == relay && connection.version == newest();
    if (other != number && fed && !connection.done && !connection.memory) ++children;
  }
  truth_.expect(children <= limits::kRelayChildren_max, who + ", which feeds four");
  // Nobody is fed by one that it feeds.
  std::size_t levels = 0;
  for (std::uint32_t next = relay; next != 0 && levels <= connections_.size(); ++levels) {
    truth_.expect(next != number, who + ", which it feeds");
    const auto above = connections_.find(next);
    const bool goes_on = above != connections_.end() && above->second.version == newest() &&
                         !above->second.done && next != number;
    next = goes_on ? above->second.parent : 0;
  }
}

// As many copies as there may be, and one more for each relay that has failed somebody.
void Publisher::check_copies() {
  std::size_t copies = 0;
  for (const auto& [number, connection] : connections_)
    if (connection.free && connection.version == newest()) ++copies;
  truth_.expect(!all_reachable_ || copies <= limits::kWeightCopies_max + failed_.size(),
                std::to_string(copies) + " copies of a version leave the publisher");
}

void Publisher::report(std::uint32_t number, const Report& report) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  if (report.kind == Report::Kind::kAgain) return;
  const bool done = report.kind == Report::Kind::kDone;
  book_->progress(number, done ? ~std::uint32_t{0} : report.buckets, time_.now());
  if (!done) return;
  found->second.done = true;
  cut_.erase(number);
}

void Publisher::streamed(std::uint32_t number) {
  report(number, {Report::Kind::kDone, 0});
}

}  // namespace troupe::sim
