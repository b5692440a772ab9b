// Tree: an immutable ordered map from (ns, name) to stored objects.
//
// Putting or erasing gives another Tree that shares all but one path with the first, so that every
// commit has a picture of its resource that readers hold as long as they like:
//
//   Tree latest = latest.Put(entry);     // about 1 us among 50,000 entries
//   Tree picture = latest;               // one counter
//
// It is a B+ tree with at most kFanout items a node; every node knows how many entries lie below
// it, so that positions (for paging and counting) cost one walk down.
//
//   root [ "a/x" : 3 ][ "b/p" : 2 ]              <- first key and count of each child
//          |            |
//        a/x a/y a/z  b/p b/q                    <- entries
//
// Threads: a Tree value belongs to one thread, what it points to may be shared freely.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace sextant::store {

class Tree {
 public:
  using Item = std::shared_ptr<const Entry>;
  static constexpr size_t kFanout = 32;

  Tree() = default;

  size_t size() const;
  // Null if there is none.
  Item Find(std::string_view ns, std::string_view name) const;
  // With `item` in the place of its key.
  Tree Put(Item item) const;
  // Without the key; the same tree if there is none.
  Tree Erase(std::string_view ns, std::string_view name) const;

  // How many entries stand before a place. `kAfterNamespace` is past every name of `ns`.
  enum class Side { kBefore, kAfter, kAfterNamespace };
  size_t Rank(std::string_view ns, std::string_view name, Side side) const;
  // Entries at positions [first, last).
  std::vector<Item> Slice(size_t first, size_t last) const;

  // For tests: order, counts and fill of every node.
  bool IsSound() const;

 private:
  struct Node;
  using Ref = std::shared_ptr<const Node>;
  struct Split {
    Ref left;
    Ref right;  // null: no split
  };

  explicit Tree(Ref root) : root_(std::move(root)) {}
  static Split PutInto(const Node& node, Item item);
  static Ref EraseFrom(const Node& node, std::string_view ns, std::string_view name);
  static void Collect(const Node& node, size_t first, size_t last, std::vector<Item>* out);
  static bool Sound(const Node& node, bool is_root);

  Ref root_;
};

}  // namespace sextant::store
