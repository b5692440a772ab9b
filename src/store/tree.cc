#include "store/tree.h"

#include <algorithm>

#include "base/check.h"

namespace sextant::store {

struct Tree::Node {
  bool leaf = true;
  size_t count = 0;              // entries below
  const Entry* first = nullptr;  // the least of them
  std::vector<Item> items;       // of a leaf
  std::vector<Ref> children;     // of an inner node

  size_t fill() const { return leaf ? items.size() : children.size(); }

  static Ref Leaf(std::vector<Item> items) {
    auto node = std::make_shared<Node>();
    node->count = items.size();
    node->first = items.front().get();
    node->items = std::move(items);
    return node;
  }

  static Ref Inner(std::vector<Ref> children) {
    auto node = std::make_shared<Node>();
    node->leaf = false;
    for (const Ref& child : children) node->count += child->count;
    node->first = children.front()->first;
    node->children = std::move(children);
    return node;
  }
};

namespace {

// <0, 0, >0 as the entry stands before, at or after (ns, name).
int Compare(const Entry& entry, std::string_view ns, std::string_view name) {
  if (const int order = std::string_view(entry.key.ns).compare(ns); order != 0) return order;
  return std::string_view(entry.key.name).compare(name);
}

bool StandsBefore(const Entry& entry, std::string_view ns, std::string_view name, Tree::Side side) {
  if (const int order = std::string_view(entry.key.ns).compare(ns); order != 0) return order < 0;
  if (side == Tree::Side::kAfterNamespace) return true;
  const int order = std::string_view(entry.key.name).compare(name);
  return side == Tree::Side::kAfter ? order <= 0 : order < 0;
}

// The child that has the key or would get it: the last one that does not begin after it.
template <typename Children>
size_t ChildFor(const Children& children, std::string_view ns, std::string_view name) {
  const auto after = std::partition_point(
      children.begin() + 1, children.end(),
      [&](const auto& child) { return Compare(*child->first, ns, name) <= 0; });
  return static_cast<size_t>(after - children.begin()) - 1;
}

template <typename Items>
size_t PlaceOf(const Items& items, std::string_view ns, std::string_view name) {
  const auto at = std::partition_point(
      items.begin(), items.end(), [&](const auto& item) { return Compare(*item, ns, name) < 0; });
  return static_cast<size_t>(at - items.begin());
}

template <typename T>
std::vector<T> TakeBack(std::vector<T>* from, size_t keep) {
  std::vector<T> back(from->begin() + static_cast<ptrdiff_t>(keep), from->end());
  from->resize(keep);
  return back;
}

}  // namespace

size_t Tree::size() const { return root_ ? root_->count : 0; }

Tree::Item Tree::Find(std::string_view ns, std::string_view name) const {
  const Node* node = root_.get();
  if (!node) return nullptr;
  while (!node->leaf) node = node->children[ChildFor(node->children, ns, name)].get();
  const size_t at = PlaceOf(node->items, ns, name);
  if (at == node->items.size() || Compare(*node->items[at], ns, name) != 0) return nullptr;
  return node->items[at];
}

Tree::Split Tree::PutInto(const Node& node, Item item) {
  const std::string_view ns = item->key.ns, name = item->key.name;
  if (node.leaf) {
    const size_t at = PlaceOf(node.items, ns, name);
    std::vector<Item> items;
    items.reserve(node.items.size() + 1);
    items = node.items;
    if (at < items.size() && Compare(*items[at], ns, name) == 0) {
      items[at] = std::move(item);
      return {Node::Leaf(std::move(items)), nullptr};
    }
    items.insert(items.begin() + static_cast<ptrdiff_t>(at), std::move(item));
    if (items.size() <= kFanout) return {Node::Leaf(std::move(items)), nullptr};
    // Objects often come in the order of their names: a full left half then stays full.
    const size_t keep = at + 1 == items.size() ? kFanout : items.size() / 2;
    std::vector<Item> back = TakeBack(&items, keep);
    return {Node::Leaf(std::move(items)), Node::Leaf(std::move(back))};
  }
  const size_t at = ChildFor(node.children, ns, name);
  Split below = PutInto(*node.children[at], std::move(item));
  std::vector<Ref> children;
  children.reserve(node.children.size() + 1);
  children = node.children;
  children[at] = std::move(below.left);
  if (below.right)
    children.insert(children.begin() + static_cast<ptrdiff_t>(at) + 1, std::move(below.right));
  if (children.size() <= kFanout) return {Node::Inner(std::move(children)), nullptr};
  const size_t keep = at + 2 == children.size() ? kFanout : children.size() / 2;
  std::vector<Ref> back = TakeBack(&children, keep);
  return {Node::Inner(std::move(children)), Node::Inner(std::move(back))};
}

Tree Tree::Put(Item item) const {
  CHECK(item != nullptr);
  if (!root_) return Tree(Node::Leaf({std::move(item)}));
  Split split = PutInto(*root_, std::move(item));
  if (!split.right) return Tree(std::move(split.left));
  return Tree(Node::Inner({std::move(split.left), std::move(split.right)}));
}

// Null when nothing is left. The key must be there.
Tree::Ref Tree::EraseFrom(const Node& node, std::string_view ns, std::string_view name) {
  if (node.leaf) {
    if (node.items.size() == 1) return nullptr;
    std::vector<Item> items = node.items;
    items.erase(items.begin() + static_cast<ptrdiff_t>(PlaceOf(items, ns, name)));
    return Node::Leaf(std::move(items));
  }
  const size_t at = ChildFor(node.children, ns, name);
  std::vector<Ref> children = node.children;
  Ref below = EraseFrom(*children[at], ns, name);
  const auto place = children.begin() + static_cast<ptrdiff_t>(at);
  if (!below) {
    children.erase(place);
    return children.empty() ? nullptr : Node::Inner(std::move(children));
  }
  *place = std::move(below);
  // Two neighbours that fit well into one node become one, so that a shrunken tree is no list.
  const size_t left = at + 1 < children.size() ? at : at == 0 ? 0 : at - 1;
  if (left + 1 < children.size() &&
      children[left]->fill() + children[left + 1]->fill() <= kFanout * 3 / 4) {
    const Node& a = *children[left];
    const Node& b = *children[left + 1];
    Ref merged;
    if (a.leaf) {
      std::vector<Item> items = a.items;
      items.insert(items.end(), b.items.begin(), b.items.end());
      merged = Node::Leaf(std::move(items));
    } else {
      std::vector<Ref> refs = a.children;
      refs.insert(refs.end(), b.children.begin(), b.children.end());
      merged = Node::Inner(std::move(refs));
    }
    children[left] = std::move(merged);
    children.erase(children.begin() + static_cast<ptrdiff_t>(left) + 1);
  }
  return Node::Inner(std::move(children));
}

Tree Tree::Erase(std::string_view ns, std::string_view name) const {
  if (!Find(ns, name)) return *this;
  Ref root = EraseFrom(*root_, ns, name);
  while (root && !root->leaf && root->children.size() == 1) root = root->children.front();
  return Tree(std::move(root));
}

size_t Tree::Rank(std::string_view ns, std::string_view name, Side side) const {
  size_t rank = 0;
  const Node* node = root_.get();
  while (node && !node->leaf) {
    // The last child that begins before the place; what is left of it stands before as a whole.
    size_t at = 0;
    while (at + 1 < node->children.size() &&
           StandsBefore(*node->children[at + 1]->first, ns, name, side)) {
      rank += node->children[at++]->count;
    }
    node = node->children[at].get();
  }
  if (!node) return 0;
  const auto end =
      std::partition_point(node->items.begin(), node->items.end(),
                           [&](const Item& item) { return StandsBefore(*item, ns, name, side); });
  return rank + static_cast<size_t>(end - node->items.begin());
}

void Tree::Collect(const Node& node, size_t first, size_t last, std::vector<Item>* out) {
  if (node.leaf) {
    out->insert(out->end(), node.items.begin() + static_cast<ptrdiff_t>(first),
                node.items.begin() + static_cast<ptrdiff_t>(last));
    return;
  }
  size_t base = 0;
  for (const Ref& child : node.children) {
    const size_t end = base + child->count;
    if (first < end && base < last) {
      Collect(*child, std::max(first, base) - base, std::min(last, end) - base, out);
    }
    base = end;
  }
}

std::vector<Tree::Item> Tree::Slice(size_t first, size_t last) const {
  std::vector<Item> out;
  last = std::min(last, size());
  if (first >= last) return out;
  out.reserve(last - first);
  Collect(*root_, first, last, &out);
  return out;
}

bool Tree::Sound(const Node& node, bool is_root) {
  if (node.fill() == 0 || node.fill() > kFanout) return false;
  if (node.leaf) {
    for (size_t i = 1; i < node.items.size(); ++i) {
      const Key& key = node.items[i]->key;
      if (Compare(*node.items[i - 1], key.ns, key.name) >= 0) return false;
    }
    return node.count == node.items.size() && node.first == node.items.front().get();
  }
  if (is_root && node.children.size() < 2) return false;
  size_t count = 0;
  for (size_t i = 0; i < node.children.size(); ++i) {
    const Node& child = *node.children[i];
    if (!Sound(child, false)) return false;
    if (child.leaf != node.children.front()->leaf) return false;
    const Key& key = child.first->key;
    if (i > 0 && Compare(*node.children[i - 1]->first, key.ns, key.name) >= 0) return false;
    count += child.count;
  }
  return count == node.count && node.first == node.children.front()->first;
}

bool Tree::IsSound() const { return !root_ || Sound(*root_, true); }

}  // namespace sextant::store
