// What a policy's trainer publishes, as the weight channel takes it. Every rank of a trainer makes
// one, and publishes it together with the others.
#pragma once

#include "runtime/learn/rl/trainer.hpp"
#include "runtime/weights/weight_channel.hpp"

#include <memory>

namespace troupe::actors {

inline weights::Offer offer_of(const std::shared_ptr<learn::PolicyTrainer>& trainer) {
  weights::Offer offer;
  offer.version = trainer->version();
  offer.master = &trainer->master();
  if (trainer->divided()) {
    offer.each_part = [trainer](const weights::Offer::See& see) { return trainer->each_part(see); };
  } else {
    offer.packed = [trainer] { return trainer->packed(); };
  }
  return offer;
}

}  // namespace troupe::actors
