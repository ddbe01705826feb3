// The value that a map holds for a key, as a pointer; null when it has none.
#pragma once

namespace troupe::core {

template <class Map>
auto* find_value(Map& map, const typename Map::key_type& key) {
  const auto place = map.find(key);
  return place == map.end() ? nullptr : &place->second;
}

}  // namespace troupe::core
