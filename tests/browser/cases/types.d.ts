// Functions of the viewers that cases call.

declare function fitLabel(name: string, fits: (text: string) => boolean): string;
