// Finds devices by names that are the same for all programs: the UUID, which NVIDIA's tools use, or
// the PCI address.
#include "kernels/vulkan/vulkan.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define LEAST_DIGITS 4 // of a UUID prefix

static const char uuid_key[] = "uuid=", pci_key[] = "pci=";

// Copies the hexadecimal digits of a UUID in lower case, without hyphens. False if there are other
// characters, or too few or too many digits.
static bool vk_find_digits(char out[33], const char *text) {
    size_t n = 0;
    text += strncmp(text, "GPU-", 4) == 0 ? 4 : 0;
    for (; *text; text++) {
        if (*text == '-') {
            continue;
        }
        if (!isxdigit((unsigned char)*text) || n == 32) {
            return false;
        }
        out[n++] = (char)tolower((unsigned char)*text);
    }
    out[n] = '\0';
    return n >= LEAST_DIGITS;
}

static bool has_uuid(const struct msc_vulkan_device *d, const char *digits) {
    char own[33];
    return vk_find_digits(own, d->uuid) && strncmp(own, digits, strlen(digits)) == 0;
}

// Normalises a PCI address to "0000:65:00.0". The input may also have nvidia-smi's form,
// 00000000:65:00.0, or no domain.
static bool read_pci(char out[32], const char *text) {
    unsigned domain = 0, bus, device, function;
    int n = 0;
    bool is_good = sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &n) == 4 &&
                   text[n] == '\0';
    if (!is_good) {
        domain = 0;
        n = 0;
        is_good =
            sscanf(text, "%2x:%2x.%1x%n", &bus, &device, &function, &n) == 3 && text[n] == '\0';
    }
    if (is_good) {
        snprintf(out, 32, "%04x:%02x:%02x.%x", domain, bus, device, function);
    }
    return is_good;
}

static enum msc_status fail_form(const char *name) {
    return MSC_FAIL(MSC_E_INVALID,
                    "device 'vulkan:%s': expected a number after ':', uuid= with a UUID or its "
                    "beginning, or pci= with an address such as 0000:65:00.0",
                    name);
}

static enum msc_status fail_missing(const char *name, const struct msc_vulkan_device devices[],
                                    int n, int n_found) {
    char list[1200] = "";
    size_t length = 0;
    for (int i = 0; i < n && length < sizeof list; i++) {
        const struct msc_vulkan_device *d = &devices[i];
        length += (size_t)snprintf(list + length, sizeof list - length,
                                   "%svulkan:%d %.60s (uuid=%s%s%s)", i > 0 ? ", " : "", d->index,
                                   d->name, d->uuid, d->pci[0] ? ", pci=" : "", d->pci);
    }
    return MSC_FAIL(MSC_E_DEVICE, "device 'vulkan:%s': %s; there %s %s", name,
                    n_found > 1 ? "several devices match" : "no device matches",
                    n == 1 ? "is" : "are", n > 0 ? list : "no Vulkan devices");
}

enum msc_status msc_vulkan_pick(int *index, const struct msc_vulkan_device devices[], int n,
                                const char *name) {
    bool is_uuid = strncmp(name, uuid_key, sizeof uuid_key - 1) == 0;
    bool is_pci = strncmp(name, pci_key, sizeof pci_key - 1) == 0;
    char wanted[33];
    int n_found = 0;
    if (!(is_uuid && vk_find_digits(wanted, name + sizeof uuid_key - 1)) &&
        !(is_pci && read_pci(wanted, name + sizeof pci_key - 1))) {
        return fail_form(name);
    }
    for (int i = 0; i < n; i++) {
        if (is_uuid ? has_uuid(&devices[i], wanted) : strcmp(devices[i].pci, wanted) == 0) {
            *index = devices[i].index;
            n_found++;
        }
    }
    return n_found == 1 ? MSC_OK : fail_missing(name, devices, n, n_found);
}

enum msc_status msc_vulkan_find(int *index, const char *name) {
    struct msc_vulkan_device devices[MSC_VULKAN_MAX_DEVICES];
    int n = msc_vulkan_list(devices, MSC_VULKAN_MAX_DEVICES);
    return msc_vulkan_pick(index, devices, n, name);
}
