// Looks up a key in a map: returns a pointer to its value, or null if the map has no such key.
#pragma once

namespace troupe::core {

template <class Map>
auto* find_value(Map& map, const typename Map::key_type& key) {
  const auto place = map.find(key);
  return place == map.end() ? nullptr : &place->second;
}

}  // namespace troupe::core
