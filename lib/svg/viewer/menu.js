// The menu of a frame, the menu of further actions, and the list of keys.

class Menu {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.element = createHtml("div", { class: "menu", role: "menu" });
        this.element.hidden = true;
        /** @type {Element | null} What had the focus before. */
        this.opener = null;
        this.element.addEventListener("keydown", event => this.handleKey(event));
    }

    get isOpen() {
        return !this.element.hidden;
    }

    /**
     * Opens the menu of a frame or function.
     *
     * @param {Target} target
     * @param {{ x: number, y: number }} place in the window
     */
    openFor(target, place) {
        const { app } = this, name = nameOfTarget(app, target), short = createHtml("b", {}, labelOfName(name).join(""));
        const title = createHtml("div", { class: "hd" }, short, ` ${shareOfTarget(app, target)}`);
        const actions = ACTIONS.filter(action => action.menu === "frame" && !action.refuse?.(app, target));
        this.open([title, ...this.createItems(actions, target)], place, name);
    }

    /** @param {Element} button */
    openMore(button) {
        const { left, bottom } = button.getBoundingClientRect();
        // In a narrow window, a tab shows the table.
        const isNarrow = matchMedia("(max-width: 700px)").matches;
        const actions = ACTIONS.filter(({ menu, keys: [key] }) => menu === "more" && !(isNarrow && key === "t"));
        this.open(this.createItems(actions, {}), { x: left, y: bottom + 4 }, "More");
    }

    openHelp() {
        const rows = ACTIONS.map(({ keys, text }) => createHtml("div", { class: "key" },
            createHtml("span", {}, ...keys.map(key => createHtml("kbd", {}, KEY_NAMES[key] ?? key))), text));
        const note = "Keys act on the frame under the pointer, or on the one with the focus.";
        const title = createHtml("div", { class: "hd" }, createHtml("b", {}, "Keys"), ` ${note}`);
        const close = createButton("Close", () => this.close());
        this.element.classList.add("help");
        this.open([title, createHtml("div", { class: "keys" }, ...rows), close], { x: innerWidth / 2 - 290, y: 60 },
            "Keys", "dialog");
    }

    /**
     * @param {Action[]} actions
     * @param {Target} target
     */
    createItems(actions, target) {
        const { app } = this;
        return actions.flatMap((action, index) => {
            const isOn = action.isOn?.(app), keys = createHtml("kbd", {}, KEY_NAMES[action.keys[0]] ?? action.keys[0]);
            const role = isOn === undefined ? { role: "menuitem" }
                : { role: "menuitemcheckbox", "aria-checked": String(isOn) };
            const button = createButton(action.text, () => {
                this.close();
                runAction(app, action, target);
            }, { class: "item", ...role });
            button.append(keys);
            return index > 0 && actions[index - 1].group !== action.group ? [createHtml("hr"), button] : [button];
        });
    }

    /**
     * @param {Element[]} content
     * @param {{ x: number, y: number }} place
     * @param {string} label
     * @param {string} role
     */
    open(content, { x, y }, label, role = "menu") {
        const { element } = this;
        if (!this.isOpen) this.opener = document.activeElement;
        this.app.details.point(undefined);
        element.replaceChildren(...content);
        element.classList.toggle("help", role === "dialog");
        setAttributes(element, { role, "aria-label": label });
        element.hidden = false;
        const { offsetWidth: width, offsetHeight: height } = element;
        const left = Math.max(6, Math.min(x, innerWidth - width - 6));
        const top = Math.max(6, Math.min(y, innerHeight - height - 6));
        element.style.transform = `translate(${left}px, ${top}px)`;
        element.querySelector("button")?.focus({ preventScroll: true });
    }

    close() {
        if (!this.isOpen) return;
        this.element.hidden = true;
        this.element.replaceChildren();
        if (this.opener?.isConnected) /** @type {HTMLElement} */ (this.opener).focus({ preventScroll: true });
        else this.app.graph.focus(this.app.graph.base(this.app.view));
    }

    /** @param {KeyboardEvent} event */
    handleKey(event) {
        const items = /** @type {HTMLElement[]} */ ([...this.element.querySelectorAll("button")]);
        const index = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
        const next = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: items.length - 1 }[event.key];
        event.stopPropagation();
        if (event.key === "Escape" || event.key === "Tab") this.close();
        else if (next !== undefined) items.at(next % items.length)?.focus();
        else {
            const item = items.find(item => item.querySelector("kbd")?.textContent === event.key);
            if (!item) return;
            item.click();
        }
        event.preventDefault();
    }
}
