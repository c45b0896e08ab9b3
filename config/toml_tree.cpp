// Reads TOML by toml++, a library of C++: the one file of mscgym that is not C.
#include "config/tree.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cjson/cJSON.h>
#include <toml++/toml.h>

namespace {

// Numbers of JSON are exact up to here.
constexpr int64_t EXACT = INT64_C(1) << 53;
// The library reads dotted keys of any length, but frees the tables of a long one by recursion
// until the stack overflows.
constexpr size_t MOST_DOTS = 16;

struct deleter {
    void operator()(cJSON *tree) const {
        cJSON_Delete(tree);
    }
};
using owned = std::unique_ptr<cJSON, deleter>;

// What is wrong with the text, and where.
struct fault {
    size_t line, column;
    const char *what;
};

[[noreturn]] void refuse(const toml::source_region &where, const char *what) {
    throw fault{where.begin.line, where.begin.column, what};
}

owned allocated(cJSON *tree) {
    if (!tree) {
        throw std::bad_alloc();
    }
    return owned(tree);
}

owned read_text(const toml::source_region &where, const std::string &text) {
    if (text.find('\0') != std::string::npos) {
        refuse(where, "text with a zero byte");
    }
    return allocated(cJSON_CreateString(text.c_str()));
}

owned read_scalar(const toml::node &node) {
    if (const auto *text = node.as_string()) {
        return read_text(node.source(), text->get());
    }
    if (const auto *truth = node.as_boolean()) {
        return allocated(cJSON_CreateBool(truth->get()));
    }
    if (const auto *number = node.as_integer()) {
        if (number->get() > EXACT || number->get() < -EXACT) {
            refuse(node.source(), "the number is not within 2^53 (9007199254740992), up to which "
                                  "numbers are exact: put it in quotes");
        }
        return allocated(cJSON_CreateNumber(static_cast<double>(number->get())));
    }
    if (const auto *number = node.as_floating_point()) {
        if (!std::isfinite(number->get())) {
            refuse(node.source(), "nan and inf are not numbers of a configuration: use a finite "
                                  "one, or leave the key out");
        }
        return allocated(cJSON_CreateNumber(number->get()));
    }
    refuse(node.source(), "a configuration has no dates and times: put it in quotes, as text");
}

class reader {
  public:
    owned read(const toml::node &node, int depth) {
        if (depth > MSC_CONFIG_DEEPEST) {
            refuse(node.source(), "nested too deeply");
        }
        if (++n_nodes_ > MSC_CONFIG_MOST_NODES) {
            refuse(node.source(), "too many values");
        }
        if (const auto *list = node.as_array()) {
            return read_list(*list, depth);
        }
        if (const auto *table = node.as_table()) {
            return read_table(*table, depth);
        }
        return read_scalar(node);
    }

  private:
    size_t n_nodes_ = 0;

    owned read_list(const toml::array &list, int depth) {
        owned out = allocated(cJSON_CreateArray());
        for (const auto &item : list) {
            owned value = read(item, depth + 1);
            if (!cJSON_AddItemToArray(out.get(), value.get())) {
                throw std::bad_alloc();
            }
            value.release();
        }
        return out;
    }

    // The library sorts keys by name.
    owned read_table(const toml::table &table, int depth) {
        std::vector<std::pair<const toml::key *, const toml::node *>> members;
        for (auto &&[key, value] : table) {
            members.emplace_back(&key, &value);
        }
        std::sort(members.begin(), members.end(), [](const auto &a, const auto &b) {
            return a.first->source().begin < b.first->source().begin;
        });
        owned out = allocated(cJSON_CreateObject());
        for (const auto &[key, node] : members) {
            const std::string name(key->str());
            if (name.find('\0') != std::string::npos) {
                refuse(key->source(), "a key with a zero byte");
            }
            owned value = read(*node, depth + 1);
            if (!cJSON_AddItemToObject(out.get(), name.c_str(), value.get())) {
                throw std::bad_alloc();
            }
            value.release();
        }
        return out;
    }
};

// The end of the string that begins at `i`, even if it is not closed.
size_t end_of_string(std::string_view text, size_t i) {
    const char quote = text[i];
    const bool is_long = text.substr(i, 3) == std::string(3, quote);
    size_t n_quotes = 0; // up to the current byte; five end a long string, as it may end in two
    for (i += is_long ? 3 : 1; i < text.size(); i++) {
        if (text[i] == quote) {
            if (++n_quotes == (is_long ? 5 : 1)) {
                return i + 1;
            }
        } else if (n_quotes >= 3 || (!is_long && text[i] == '\n')) {
            return i;
        } else {
            n_quotes = 0;
            i += quote == '"' && text[i] == '\\';
        }
    }
    return text.size();
}

// Refuses long dotted keys. Where the text is not TOML, the library fails before it reads on.
void check_dots(std::string_view text) {
    size_t n_dots = 0;
    for (size_t i = 0; i < text.size(); i++) {
        if (text[i] == '"' || text[i] == '\'') {
            i = end_of_string(text, i) - 1;
        } else if (text[i] == '#') {
            i = std::min(text.find('\n', i), text.size()) - 1;
        } else if (std::strchr("\n,=[]{}", text[i]) && text[i] != '\0') {
            n_dots = 0;
        } else if (text[i] == '.' && ++n_dots > MOST_DOTS) {
            const std::string_view before = text.substr(0, i);
            const size_t begin = before.rfind('\n') + 1; // npos + 1 is 0
            throw fault{1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n')),
                        i - begin + 1, "nested too deeply: the key has more than 16 dots"};
        }
    }
}

// Allocates nothing, as it runs where an exception would reach C.
void tell(struct msc_config_toml_error *error, size_t line, size_t column, std::string_view what) {
    error->line = line;
    error->column = column;
    std::snprintf(error->what, sizeof error->what, "%.*s", static_cast<int>(what.size()),
                  what.data());
    error->what[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(error->what[0])));
}

} // namespace

struct cJSON *msc_config__parse_toml(const char *text, size_t length,
                                     struct msc_config_toml_error *error) {
    *error = {};
    try {
        const std::string_view whole(text, length);
        check_dots(whole);
        const toml::table table = toml::parse(whole);
        return reader().read(table, 0).release();
    } catch (const toml::parse_error &e) {
        const toml::source_position at = e.source().begin;
        tell(error, at.line, at.column, e.description());
    } catch (const fault &f) {
        tell(error, f.line, f.column, f.what);
    } catch (const std::exception &) { // std::bad_alloc, or std::length_error from a huge text
        error->is_memory = true;
    }
    return nullptr;
}

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *msc_config__toml_version(void) {
    return VERSION_TEXT(TOML_LIB_MAJOR, TOML_LIB_MINOR, TOML_LIB_PATCH);
}
